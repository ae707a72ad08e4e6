package conform

// Mutation is a change to the fakes of this repository that makes a row fail: Old, which is there once, becomes New.
type Mutation struct {
	File     string // below fakes
	Old, New string
}

func ec2Mutations() map[string]Mutation { return map[string]Mutation{} }

func imdsMutations() map[string]Mutation { return map[string]Mutation{} }
