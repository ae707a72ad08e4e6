// Package ec2 is a model of the part of EC2 that a VPC CNI lives with: subnets, elastic network
// interfaces (ENIs), their addresses, instances, API throttling, and the instance metadata (IMDS)
// view that trails behind all of it. A Cloud is one account in one region.
//
// # How it is used
//
// A Cloud is a value that is stepped; it owns no clock, goroutine, lock or socket.
//
//	c := ec2.New(ec2.Config{}, seed)
//	i, err := c.Launch(0, ec2.LaunchSpec{Type: "m5.large"})
//	there, back := c.Travel(&req)         // how long the request and its answer are under way
//	resp := c.Serve(now+there, &req)      // atomic, at arrival; the caller hears of it `back` later
//	at, ok := c.Next()                    // when the cloud itself does something next
//	c.Advance(at)                         // attaches and detaches complete, links appear
//	for _, e := range c.Events() { ... }  // what happened, in order
//	view, ok := c.IMDS(now, i)            // what the instance's metadata says now
//
// Time is a time.Duration since the simulation began. It never runs backwards: an instant before the
// latest one seen counts as the latest.
//
// # What it promises
//
// Same seed and same calls, same answers: every draw comes from a stream that is part of the value, one
// stream per instance, so that what one node does cannot change what another node draws. Clone is
// deep: a clone and its original never influence each other. No input makes it panic.
//
// The model is stricter than the real thing, never kinder. Where EC2 may do either of two things the
// model does the worse one, or draws:
//
//   - every Describe reads a replica that is behind by a drawn lag (Lag.Describe), and the next one may
//     be further behind than the last: reads are not monotonic (Lag.Monotonic makes them so);
//   - AvailableIpAddressCount trails (Lag.Available);
//   - an interface's security groups are others at once; Describes and metadata follow as they do for its addresses;
//   - a mutation may answer InvalidNetworkInterfaceID.NotFound for an ENI that was only just created;
//   - Attach and Detach answer long before they are done; the kernel link, the API status and IMDS
//     change at three different times;
//   - a freed address is unavailable for a while and then goes to the end of the queue;
//   - an attachment's DeleteOnTermination is false until it is set, and setting it needs the attachment;
//   - a forced detach leaves the device index unusable and IMDS stale until Reboot;
//   - AssignPrivateIpAddresses is not idempotent, UnassignPrivateIpAddresses is all or nothing; the same holds for IPv6;
//   - a prefix needs an aligned block of which no address is in use, and one that was given back comes last.
//     FragmentSubnet leaves a subnet full of free addresses without any;
//   - what is of a kind can be asked for in one way only: by count or by value, as addresses or as prefixes.
//
// Sources: the Amazon EC2 API reference (actions and "Error codes for the Amazon EC2 API"), "Request
// throttling for the Amazon EC2 API", "Ensuring idempotency in Amazon EC2 API requests", "Eventual
// consistency in the Amazon EC2 API", "Elastic network interfaces" and "Instance metadata categories"; issues
// amazon-ecs-cni-plugins#66, ec2-net-utils#38, cilium#9730 and amazon-vpc-cni-k8s#69 for what the
// documents leave out.
//
// # Instances
//
// Launch starts an instance that runs at once: the model begins where the node's own software does. RunInstances takes Latency.Launch
// to make one running, TerminateInstances takes Latency.Terminate to end one, and RebootInstances restarts one after Latency.Reboot.
// StopInstances takes Latency.Stop: a stopped one keeps interfaces and addresses, has no metadata and takes up no capacity until StartInstances.
// What a type allows is in a catalogue of our own (Types, LimitsOf). On a type with several network cards each card has its own limit
// and its own device indexes; Limits.ENIs is that of the default card, MaximumENIs that of all. Config.Capacity, Config.VCPUQuota and
// Config.ENIQuota bound what a launch can have. Status checks are passed a minute after an instance began to run.
//
// # What surrounds interfaces
//
// Zones are those that subnets are in. A VPC has its main route table, with a local route for each CIDR, and the
// attributes that CreateVpc gives it; the account has the default quotas and no Elastic IP address. A subnet can be
// deleted when no address of it is in use, and none can be made.
//
// # Faults and the ledger
//
// A Fault is something that goes wrong from now on, or what a third party does behind a node's back. Its text is one
// line, the same in a world file, an admin endpoint and a log: "Fail action=AttachNetworkInterface node=i-0abc
// code=InternalError times=3" (ParseFault, Fault.String, FaultKind.Usage). DrawFault picks one from a seed. LedgerRows
// says what became of all calls, by action, caller, outcome and error code. docs/faults.md lists the kinds beside the
// verbs of scenarios.
//
// # What it leaves out
//
// Branch interfaces; what trunk interfaces and Elastic@Network@Adapters do (a third party may attach one:
// ThirdPartyAttach); stopping and starting, images, disks and rules of groups, several interfaces in one RunInstances
// or prefixes and IPv6 addresses in it, IPv6-only subnets and primary IPv6 addresses, Elastic IPs, subnet CIDR
// reservations that come and go (they are part of the Config), the short "pending" of a new interface. A Cloud is one
// account in one region; several are several Clouds. A Describe is answered whole; fakes/ec2/server cuts it into
// pages.
package ec2
