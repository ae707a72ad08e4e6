// Package cluster makes a kind cluster whose nodes are instances in a VPC: a real kubelet, a real containerd and a
// real API server, in node containers. What a machine outside of EC2 lacks is a model, the very one that the simulator
// steps: EC2, instance metadata, and the VPC (sim/vpc).
//
//	one process on the host: the models, the VPC
//	     |                                            Docker network NAME = the VPC's subnet
//	     |   NAME-vpc, the router's network namespace ──eth0── .1 ──┬── .2  the Docker host
//	     |                     |                                    ├── eth0 = device 0 of NAME-control-plane
//	     |                     |                                    └── eth0 = device 0 of NAME-worker ...
//	     |                     └── further ENIs: veth pairs into the node containers
//	     └── listens inside of every node: 169.254.169.254:80 (metadata), 127.0.0.1:4566 (EC2)
//
// The container NAME-vpc does nothing: Docker plugs its network namespace into the network, and sim/vpc makes the VPC's router of it.
// A node does not answer ARP for its own address (arp_ignore), the router does; so all that goes between two machines passes the router,
// which forwards it to the ENI that EC2 has given the address, if it came from the ENI that owns its source.
//
// A cluster's time is CLOCK_BOOTTIME, and what its clock has leapt (Loop).
//
// Everything that a cluster consists of is in namespaces that Docker or this package made: Close, or Down from another
// process, removes the containers and the network, and with them the namespaces and what is in them. A Hold tells other
// processes who has which cluster.
package cluster
