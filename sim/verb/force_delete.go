package verb

var forceDelete = &Verb{
	Name: "force-delete", On: onPod,
	Doc:    "takes the object away at once; kubelet kills in the background",
	Source: "seeds/002",
	Strike: func(t *Target) Strike { return t.API.Delete(t.Subject.Pod, true) },
}
