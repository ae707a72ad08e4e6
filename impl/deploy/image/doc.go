// Package image makes the container image of the daemon, docker.io/enilab/cni, for linux/amd64 and linux/arm64:
//
//	/ipamd                                 the entry point: serve; with the word init, the init container
//	/cni/aws-cni                           the plugin, which `ipamd init` copies to the node
//	/cni/{bandwidth,host-local,loopback,portmap,tuning}
//	                                       plugins that are chained, from github.com/containernetworking/plugins as in go.mod
//	/etc/ssl/certs/ca-certificates.crt     the root certificates by which EC2's endpoints are known
//	/enilab                                with Options.Laboratory: the laboratory, which plays mutants in the daemon's place
//
// There is nothing else: no shell, no libc, no iptables. The binaries are static; go build makes them from this module, for which
// its sources and a Go release are needed, and no Docker.
//
// # Root certificates
//
// They are the building machine's, or those of Options.Roots: the module has none of its own. Who publishes an image
// should name a file, for a machine may trust more than it should, such as a company's proxy. On a node AWS_CA_BUNDLE
// names others.
//
// # The layout
//
// The image is an OCI image layout as a tar, which needs no registry to get into a cluster:
//
//	ctr -n k8s.io images import --all-platforms bin/enilab-cni.tar
//	kind load image-archive bin/enilab-cni.tar
//	skopeo copy --all oci-archive:bin/enilab-cni.tar docker://registry.example/enilab/cni:v1
//
// `docker load` reads it from Docker 25 on, with the containerd image store.
//
// # The same sources, the same image
//
// Files are sorted, root's, and of 1970; the binaries know no path, no commit and no time; what a shell has set for go build (GOFLAGS, GOAMD64)
// does not reach it. Another Go release or other root certificates give another digest, and nothing else does.
package image
