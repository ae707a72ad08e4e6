// Package machine is what a machine with a real kernel has of EC2, in whichever world: the links of its ENIs, which the VPC's cables and
// routes follow, the requests that it sends to EC2 and that travel as the model says, and the queue of what is due in a world's loop.
// Worlds netns and kind are made of it.
package machine
