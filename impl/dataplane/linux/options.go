package linux

// Options is how a Kernel behaves. The zero value is right for production.
type Options struct {
	// Floor takes every fallback, as on Linux 5.10, whatever the kernel can do: a node can be run as it
	// would on the oldest kernel, and the tests are run both ways.
	Floor bool
}
