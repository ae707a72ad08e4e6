package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/sim/vm"
)

// vmCommand is what there is about virtual machines beside run.
func (l *cli) vmCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "vm",
		Short: "says what virtual machines can be played in",
		Long: `vm is about the virtual machines of enilab run --on netns --in vm: world netns in a stock QEMU, in virtual time, without root, KVM or
network. The same seed gives the same bytes: report, timeline, EC2's calls, packets, the kernel's console.`,
		Example: `  enilab vm kernels
  enilab run --on netns --in vm scenarios/socket-mismatch.scn
  enilab run --on netns --in vm=/boot/vmlinuz-6.12.9-cloud-amd64 --seeds 1-5 scenarios/drift.scn
  enilab run --on netns --in vm --twice scenarios/drift.scn       prove that it repeats`,
		Args: known,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(&cobra.Command{Use: "kernels", Short: "lists the kernels that there are, and says how to get one",
		Args: nothing, RunE: func(*cobra.Command, []string) error { return l.kernels() }})
	return c
}

func (l *cli) kernels() error {
	list := vm.Find()
	t := tabwriter.NewWriter(l.out, 0, 0, 2, ' ', 0)
	for i := range list {
		arch := cmp.Or(list[i].Arch, "-")
		fmt.Fprintf(t, "%s\t%s\t%s\n", list[i].Version, arch, list[i].String())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(list) > 0 {
		fmt.Fprintf(l.out, "\nthe first one is what --in vm takes; --in vm=FILE takes another. To get more: ")
	} else {
		fmt.Fprintf(l.out, "there is none: none in %s, none readable in /boot, and %s names none. To get one: ",
			vm.Cache(), vm.KernelVariable)
	}
	fmt.Fprintln(l.out, vm.HowToGet())
	if runtime.GOARCH == "amd64" {
		fmt.Fprintln(l.out, "\nfor machines of arm64 (--arch arm64): "+vm.HowToGetFor("arm64"))
	}
	return nil
}
