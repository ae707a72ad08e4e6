package vm

import (
	"io"
	"os"
	"time"
)

// Pause is where a machine stops for good, and who looks around in it then.
type Pause struct {
	// At is an instant of the scenario: the first look after it that init takes is where the machine stops, a tenth of a second later at most, and
	// what the laboratory is in the middle of then.
	At time.Duration
	// Tools are put into the machine once it has paused.
	Tools *Image
	// Input are the commands of the shell. It is read to its end before the machine starts, so that they are always the same ones, unless there is
	// a Terminal.
	Input io.Reader
	// Terminal is where somebody types, and Term what kind it is; nil: nobody does.
	Terminal *os.File
	Term     string
}

// PauseFolder is where a machine that has paused has what is known of the run so far.
const PauseFolder = "/pause"

// Places are the network namespaces of a laboratory that stands still, by names for people: the file placesName of PauseFolder.
type Places struct {
	Title string // what runs, and at which instant it stands
	List  []Place
}

// Place is one of them.
type Place struct {
	Name  string
	Netns string // path of the network namespace
	About string
}

const placesName = "places.json"
