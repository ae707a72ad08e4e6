package verb

var deletePod = &Verb{
	Name: "delete", On: onPod,
	Doc:      "deletes the pod gracefully",
	Strike:   func(t *Target) Strike { return t.API.Delete(t.Subject.Pod, false) },
	Ordinary: true,
	Pods:     true,
}
