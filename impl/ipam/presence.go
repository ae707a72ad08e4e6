package ipam

import "time"

// presence is what metadata and EC2 say of whether an ENI is there: how often in a row it was not. What that means Policy.Absent decides.
type presence struct {
	Asking        bool          // EC2 is to be asked
	ByIMDS, ByEC2 int           // consecutive answers without it
	Unlisted      time.Duration // since when metadata does not list it
}

// there: what was said against it is refuted.
func (p *presence) there() { p.ByIMDS, p.ByEC2 = 0, 0 }

// unlisted counts a view of metadata without it.
func (p *presence) unlisted(now time.Duration) {
	if p.ByIMDS++; p.ByIMDS == 1 {
		p.Unlisted = now
	}
}
