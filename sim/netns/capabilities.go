package netns

// DaemonCapabilities are what aws-node's manifest grants, and all that ipamd may use: NET_ADMIN and NET_RAW (capabilities(7)).
func DaemonCapabilities() []int { return []int{capNetAdmin, capNetRaw} }

const (
	capNetAdmin = 12
	capNetRaw   = 13
)
