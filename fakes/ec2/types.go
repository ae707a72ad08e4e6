package ec2

import "strings"

// Type is an instance type as DescribeInstanceTypes shows it.
type Type struct {
	Name string
	Limits
	VCPUs     int
	MemoryMiB int
	Arch      string // "x86_64" or "arm64"
	// Hypervisor is "nitro", "xen", or "" for bare metal. Prefixes are for Nitro and bare metal only ("Assign prefixes to network
	// interfaces").
	Hypervisor string
}

// Types are all instance types that the catalogue has, in its order.
func Types() []Type { return append([]Type(nil), catalogue...) }

// TypeOf looks an instance type up in the catalogue.
func TypeOf(name string) (Type, bool) {
	n, ok := catalogueIndex[name]
	if !ok {
		return Type{}, false
	}
	return catalogue[n], true
}

// The catalogue is a table of our own, from "Elastic network interfaces" (maximum IP addresses per network interface), "Network
// cards" and "Instance types" of the EC2 user guide. It is made once and never written to.
var catalogue, catalogueIndex = makeCatalogue()

const (
	intel    = "x86_64"
	graviton = "arm64"
)

// rung is a size and what nearly every Nitro family of three letters allows at it.
type rung struct {
	size            string
	vcpus, enis, ip int
}

var ladder = [...]rung{
	{"medium", 1, 2, 4}, {"large", 2, 3, 10}, {"xlarge", 4, 4, 15}, {"2xlarge", 8, 4, 15}, {"4xlarge", 16, 8, 30},
	{"8xlarge", 32, 8, 30}, {"9xlarge", 36, 8, 30}, {"12xlarge", 48, 8, 30}, {"16xlarge", 64, 15, 50}, {"18xlarge", 72, 15, 50},
	{"24xlarge", 96, 15, 50}, {"32xlarge", 128, 15, 50}, {"48xlarge", 192, 15, 50},
}

// families are those that follow the ladder; GiB is memory for each vCPU.
var families = [...]struct {
	names, arch string
	gib         int
	sizes       string
}{
	{"c5", intel, 2, "large xlarge 2xlarge 4xlarge 9xlarge 12xlarge 18xlarge 24xlarge"},
	{"m5 m5a m5d m5n", intel, 4, "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge"},
	{"r5 r5a r5d r5n", intel, 8, "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge"},
	{"c6i", intel, 2, "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge"},
	{"m6i", intel, 4, "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge"},
	{"r6i", intel, 8, "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge"},
	{"m6a", intel, 4, "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 32xlarge 48xlarge"},
	{"c7i", intel, 2, "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 48xlarge"},
	{"m7i", intel, 4, "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 48xlarge"},
	{"r7i", intel, 8, "large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge 48xlarge"},
	{"c6g c7g", graviton, 2, "medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge"},
	{"m6g m7g", graviton, 4, "medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge"},
	{"r6g r7g", graviton, 8, "medium large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge"},
}

// single is a type that follows no ladder; ENIs are those of each of its cards.
type single struct {
	name             string
	cards, enis, ip  int
	vcpus, mib       int
	arch, hypervisor string
	trunk            bool
}

const gib = 1024 // MiB

var singles = [...]single{
	{"t2.nano", 1, 2, 2, 1, gib / 2, intel, "xen", false},
	{"t2.micro", 1, 2, 2, 1, gib, intel, "xen", false},
	{"t2.small", 1, 3, 4, 1, 2 * gib, intel, "xen", false},
	{"t2.medium", 1, 3, 6, 2, 4 * gib, intel, "xen", false},
	{"t2.large", 1, 3, 12, 2, 8 * gib, intel, "xen", false},
	{"t3.nano", 1, 2, 2, 2, gib / 2, intel, "nitro", false},
	{"t3.micro", 1, 2, 2, 2, gib, intel, "nitro", false},
	{"t3.small", 1, 3, 4, 2, 2 * gib, intel, "nitro", false},
	{"t3.medium", 1, 3, 6, 2, 4 * gib, intel, "nitro", false},
	{"t3.large", 1, 3, 12, 2, 8 * gib, intel, "nitro", false},
	{"t3.xlarge", 1, 4, 15, 4, 16 * gib, intel, "nitro", false},
	{"t3.2xlarge", 1, 4, 15, 8, 32 * gib, intel, "nitro", false},
	{"t3a.small", 1, 2, 4, 2, 2 * gib, intel, "nitro", false},
	{"t3a.medium", 1, 3, 6, 2, 4 * gib, intel, "nitro", false},
	{"t3a.large", 1, 3, 12, 2, 8 * gib, intel, "nitro", false},
	{"t4g.nano", 1, 2, 2, 2, gib / 2, graviton, "nitro", false},
	{"t4g.micro", 1, 2, 2, 2, gib, graviton, "nitro", false},
	{"t4g.small", 1, 3, 4, 2, 2 * gib, graviton, "nitro", false},
	{"t4g.medium", 1, 3, 6, 2, 4 * gib, graviton, "nitro", false},
	{"t4g.large", 1, 3, 12, 2, 8 * gib, graviton, "nitro", false},
	{"m4.large", 1, 2, 10, 2, 8 * gib, intel, "xen", false},
	{"m4.xlarge", 1, 4, 15, 4, 16 * gib, intel, "xen", false},
	{"m4.2xlarge", 1, 4, 15, 8, 32 * gib, intel, "xen", false},
	{"m4.4xlarge", 1, 8, 30, 16, 64 * gib, intel, "xen", false},
	{"m4.10xlarge", 1, 8, 30, 40, 160 * gib, intel, "xen", false},
	{"m4.16xlarge", 1, 8, 30, 64, 256 * gib, intel, "xen", false},
	{"m5.metal", 1, 15, 50, 96, 384 * gib, intel, "", true},
	{"c5.metal", 1, 15, 50, 96, 192 * gib, intel, "", true},
	{"r5.metal", 1, 15, 50, 96, 768 * gib, intel, "", true},
	{"inf1.xlarge", 1, 4, 10, 4, 8 * gib, intel, "nitro", true},
	{"inf1.2xlarge", 1, 4, 10, 8, 16 * gib, intel, "nitro", true},
	{"inf1.6xlarge", 1, 8, 30, 24, 48 * gib, intel, "nitro", true},
	{"g5.xlarge", 1, 4, 15, 4, 16 * gib, intel, "nitro", true},
	{"g5.2xlarge", 1, 4, 15, 8, 32 * gib, intel, "nitro", true},
	{"g5.4xlarge", 1, 8, 30, 16, 64 * gib, intel, "nitro", true},
	{"p3dn.24xlarge", 1, 15, 50, 96, 768 * gib, intel, "nitro", true},
	{"p4d.24xlarge", 4, 15, 50, 96, 1152 * gib, intel, "nitro", true},
	{"p4de.24xlarge", 4, 15, 50, 96, 1152 * gib, intel, "nitro", true},
	{"p5.48xlarge", 32, 2, 50, 192, 2048 * gib, intel, "nitro", true},
	{"dl1.24xlarge", 4, 15, 50, 96, 768 * gib, intel, "nitro", true},
	{"trn1.32xlarge", 8, 5, 50, 128, 512 * gib, intel, "nitro", true},
}

func makeCatalogue() ([]Type, map[string]int) {
	var all []Type
	for _, s := range singles {
		all = append(all, Type{s.name, Limits{s.enis, s.ip, s.ip, s.cards, s.trunk}, s.vcpus, s.mib, s.arch, s.hypervisor})
	}
	for _, f := range families {
		for _, name := range strings.Fields(f.names) {
			for _, size := range strings.Fields(f.sizes) {
				all = append(all, laddered(name+"."+size, size, f.arch, f.gib))
			}
		}
	}
	index := make(map[string]int, len(all))
	for n := range all {
		index[all[n].Name] = n
	}
	return all, index
}

// laddered is a type of a family that follows the ladder.
func laddered(name, size, arch string, perVCPU int) Type {
	for _, r := range ladder {
		if r.size == size {
			return Type{name, Limits{r.enis, r.ip, r.ip, 1, true}, r.vcpus, r.vcpus * perVCPU * gib, arch, "nitro"}
		}
	}
	return Type{Name: name} // a size that the ladder lacks: a test finds it
}

// describeTypes answers for the types that the catalogue has.
func describeTypes(r *Request) Response {
	p := success()
	if len(r.Types) == 0 {
		p.Types = Types()
		return p
	}
	var unknown []string
	for _, name := range r.Types {
		t, ok := TypeOf(name)
		if !ok {
			unknown = append(unknown, name)
			continue
		}
		p.Types = append(p.Types, t)
	}
	if len(unknown) > 0 {
		return failure(codeType, "The following supplied instance types do not exist: ["+strings.Join(unknown, ", ")+"]")
	}
	return p
}
