package verb

var remove = &Verb{
	Name: "remove", On: onEC2,
	Params: []Param{named("node", Count, "1", "whose"), named("device", Count, "1", "device index")},
	Doc:    "a stranger detaches an ENI and deletes it",
	Strike: func(t *Target) Strike { return t.atDevice(t.Cloud.Model.ThirdPartyDelete, "deleted") },
	Check:  hasDevice,
	Survives: Survival{Never: true,
		Why: "the addresses of the pods on that ENI are anybody's, and their pods have no others"},
}
