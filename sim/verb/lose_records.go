package verb

var loseRecords = &Verb{
	Name: "lose-records", On: onNode,
	Doc:    "the daemon's records of allocations are gone: a damaged file, a lost tmpfs",
	Source: "plugins #498",
	Strike: func(t *Target) Strike { return t.Daemon.LoseRecords() },
	AnyCNI: Survival{Never: true, Why: "a CNI's records may be all that it knows of its pods"},
	Needs:  Needs{Ours: "where it keeps what it knows is not said"},
}
