package ec2

// InterfaceKind is what an interface is for (DescribeNetworkInterfaces, interfaceType).
type InterfaceKind uint8

const (
	Ordinary InterfaceKind = iota
	Trunk                  // carries branch interfaces: security groups for pods
	EFA                    // an Elastic@Network@Adapter beside a network device
	EFAOnly                // an Elastic@Network@Adapter alone: no address, and no link in the kernel
)

var interfaceKinds = [...]string{"interface", "trunk", "efa", "efa-only"}

// String is the kind as EC2 spells it.
func (k InterfaceKind) String() string {
	if int(k) < len(interfaceKinds) {
		return interfaceKinds[k]
	}
	return "unknown"
}

// ParseInterfaceKind reads what String writes.
func ParseInterfaceKind(text string) (InterfaceKind, bool) {
	for k, name := range interfaceKinds {
		if name == text {
			return InterfaceKind(k), true
		}
	}
	return 0, false
}
