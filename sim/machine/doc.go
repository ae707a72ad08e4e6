// Package machine is what a machine with a real kernel has of EC2, in whichever world: the links of its ENIs, which the VPC's cables and
// routes follow, the requests that it sends to EC2 and that travel as the model says, and what a world's loop does: what is due, and what others hand to it.
// Worlds netns and kind are made of it.
package machine
