package kernel

import "github.com/enilab/enilab/impl/dataplane"

// ThirdParty is the rule of others than the CNI that scenarios put on a node (add-third-party). Real kernels are given the same one, and more.
var ThirdParty = dataplane.Rule{Priority: 30000, Mark: 0x4000, Table: 4000}
