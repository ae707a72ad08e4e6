// Package interference changes a machine's kernel as third parties do: a firewall script, nm-cloud-setup, udev, an
// administrator. What a scenario lets them do is the same in the worlds with a real kernel (netns and kind).
//
// Do carries out what a scenario lets them do. Its functions change the network namespace of the calling thread. They
// use nothing that the daemon uses.
package interference
