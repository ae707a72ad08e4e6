package ipam

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// tick is the tag of a nil Input.
const tick = "Tick"

// MarshalInput is an input as a JSON object with one member, named after its type: {"Add":{…}}; {"Tick":{}} is nil.
func MarshalInput(in Input) ([]byte, error) {
	switch in.(type) {
	case nil:
		return tagged(tick, struct{}{})
	case Start:
		return tagged("Start", in)
	case Set:
		return tagged("Set", in)
	case Add:
		return tagged("Add", in)
	case Del:
		return tagged("Del", in)
	case Check:
		return tagged("Check", in)
	case GC:
		return tagged("GC", in)
	case Gone:
		return tagged("Gone", in)
	case Seen:
		return tagged("Seen", in)
	case Called:
		return tagged("Called", in)
	case Applied:
		return tagged("Applied", in)
	case Saved:
		return tagged("Saved", in)
	case Stop:
		return tagged("Stop", in)
	}
	return nil, fmt.Errorf("marshal input: %T is none", in)
}

// UnmarshalInput reads what MarshalInput wrote. Unknown members are errors: what is not understood cannot be stepped again.
func UnmarshalInput(data []byte) (Input, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, fmt.Errorf("unmarshal input: %w", err)
	}
	if len(object) != 1 {
		return nil, fmt.Errorf("unmarshal input: expected one tag, found %d", len(object))
	}
	tag := slices.Sorted(maps.Keys(object))[0]
	in, err := readInput(tag, object[tag])
	if err != nil {
		return nil, fmt.Errorf("unmarshal input %s: %w", tag, err)
	}
	return in, nil
}

func readInput(tag string, raw []byte) (Input, error) {
	switch tag {
	case tick:
		return nil, strictly(raw, &struct{}{})
	case "Start":
		return read[Start](raw)
	case "Set":
		return read[Set](raw)
	case "Add":
		return read[Add](raw)
	case "Del":
		return read[Del](raw)
	case "Check":
		return read[Check](raw)
	case "GC":
		return read[GC](raw)
	case "Gone":
		return read[Gone](raw)
	case "Seen":
		return read[Seen](raw)
	case "Called":
		return read[Called](raw)
	case "Applied":
		return read[Applied](raw)
	case "Saved":
		return read[Saved](raw)
	case "Stop":
		return read[Stop](raw)
	}
	return nil, errors.New("no input has this tag")
}

func read[T Input](raw []byte) (Input, error) {
	var in T
	if err := strictly(raw, &in); err != nil {
		return nil, err
	}
	return in, nil
}

// MarshalEffects is the effects as a JSON array, each as an object with one member named after its type: [{"Save":{…}},{"Look":{…}}].
func MarshalEffects(effs []Effect) ([]byte, error) {
	out := []byte{'['}
	for i, e := range effs {
		if i > 0 {
			out = append(out, ',')
		}
		one, err := marshalEffect(e)
		if err != nil {
			return nil, err
		}
		out = append(out, one...)
	}
	return append(out, ']'), nil
}

func marshalEffect(e Effect) ([]byte, error) {
	switch e.(type) {
	case *Reply:
		return tagged("Reply", e)
	case *Call:
		return tagged("Call", e)
	case *Look:
		return tagged("Look", e)
	case *Apply:
		return tagged("Apply", e)
	case *Save:
		return tagged("Save", e)
	case *Note:
		return tagged("Note", e)
	}
	return nil, fmt.Errorf("marshal effect: %T is none", e)
}

func tagged(tag string, v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("marshal %s: %w", tag, err)
	}
	out := make([]byte, 0, len(tag)+len(body)+5)
	out = append(append(append(out, '{', '"'), tag...), '"', ':')
	return append(append(out, body...), '}'), nil
}
