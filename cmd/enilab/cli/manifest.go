package cli

import (
	"github.com/spf13/cobra"

	"github.com/enilab/enilab/impl/deploy"
)

func (l *cli) manifestCommand() *cobra.Command {
	var o deploy.Options
	c := &cobra.Command{
		Use:   "manifest",
		Short: "prints the CNI's Kubernetes manifests",
		Long: `manifest prints the DaemonSet aws-node, its ServiceAccount and its rights as YAML, to be applied over amazon-vpc-cni-k8s's or where nothing
is. The operator's settings, the policy agent and amazon-vpc-cni-k8s's role stay as they are (docs/ipamd.md, Installing).`,
		Example: `  enilab manifest --image registry.example/enilab:1 | kubectl apply --server-side --force-conflicts --field-manager=enilab -f -`,
		Args:    nothing,
		RunE: func(*cobra.Command, []string) error {
			text, err := deploy.Manifests(o)
			if err != nil {
				return usage("%v", err)
			}
			_, err = l.out.Write(text)
			return err
		},
	}
	c.Flags().StringVar(&o.Image, "image", deploy.Repository+":"+deploy.DefaultTag, "the CNI's image (make image makes one)")
	return c
}
