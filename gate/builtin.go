package gate

import "embed"

// Files are the gate's own scenarios: what everybody's upgrade meets, and a load under which figures are taken.
//
//go:embed change.scn load.scn
var Files embed.FS

// Change and Load are their names.
const (
	Change = "change.scn"
	Load   = "load.scn"
)

// Incidents are the scenarios beside Change that are played where none is named: the write-ups that docs/incidents.md calls seeds.
func Incidents() []string {
	return []string{"socket-mismatch.scn", "force-delete.scn", "statefulset-name-reuse.scn", "del-retries.scn", "subnet-exhausted.scn"}
}
