// Package conform asks an endpoint that says it is EC2, or an instance's metadata service, whether it behaves like the real one.
//
// A table has one Row per behaviour: a call, what must be so before it, what has to be the answer, and which AWS document says so.
// The same rows are asked of the model in fakes/ec2, of moto, of LocalStack and of AWS itself; a Report says which answers differ.
//
//	report, err := conform.EC2(ctx, conform.Config{Endpoint: "http://127.0.0.1:4566"})
//	report, err := conform.IMDS(ctx, conform.Config{Endpoint: "http://169.254.169.254"})
//
// # What it promises
//
// Every row makes what it needs in a subnet that is there already, with a tag of its own (tagKey), and takes it away again, also
// when the endpoint did not do what was expected. What could not be taken away is named in the report. Nothing that a run has not made
// is changed, but for an instance to which interfaces are attached: on AWS that has to be named, elsewhere a running one is found.
//
// A row knows that EC2 is eventually consistent. It asks again, until a deadline, while an answer may be old: an identifier that was
// made a moment ago and is not found yet, a Describe that shows what was. It never takes an old answer for a different behaviour, and
// never a different behaviour for an old answer.
//
// A row that anything would pass is not a row. Each has a mutation in testdata/mutations: a small change to the fakes of this repository
// that makes it fail, and where possible no other row. The tests apply every one, build a sample of them, and `make conform-mutants` builds
// them all.
//
// The endpoint is spoken to in raw HTTP, without an SDK's help: what an SDK would check, repeat or repair is part of what is asked.
package conform
