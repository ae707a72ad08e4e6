package server

import (
	"encoding/json"
	"net/http"
)

// status is the API's answer when something is wrong; it is an error of this package, too.
type status struct {
	Kind       string   `json:"kind"`
	APIVersion string   `json:"apiVersion"`
	Metadata   struct{} `json:"metadata"`
	Status     string   `json:"status"`
	Message    string   `json:"message"`
	Reason     string   `json:"reason"`
	Details    *details `json:"details,omitempty"`
	Code       int      `json:"code"`
}

type details struct {
	Name   string  `json:"name,omitempty"`
	Kind   string  `json:"kind,omitempty"`
	Causes []cause `json:"causes,omitempty"`
}

type cause struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Error is the message.
func (s *status) Error() string { return s.Message }

func failure(code int, reason, message string) *status {
	return &status{Kind: "Status", APIVersion: "v1", Status: "Failure", Message: message, Reason: reason, Code: code}
}

func badRequest(message string) *status {
	return failure(http.StatusBadRequest, "BadRequest", message)
}

func noNode(name string) *status {
	s := failure(http.StatusNotFound, "NotFound", `nodes "`+name+`" not found`)
	s.Details = &details{Name: name, Kind: "nodes"}
	return s
}

func forbidden(resource string) *status {
	s := failure(http.StatusForbidden, "Forbidden", resource+` is forbidden: cannot list resource "`+resource+`" for more than one node: give a fieldSelector`)
	s.Details = &details{Kind: resource}
	return s
}

// expired: the client must list again.
func expired(message string) *status { return failure(http.StatusGone, "Expired", message) }

// tooLarge is a version that this server has not reached.
func tooLarge() *status {
	const message = "Too large resource version"
	s := failure(http.StatusGatewayTimeout, "Timeout", message)
	s.Details = &details{Causes: []cause{{"ResourceVersionTooLarge", message}}}
	return s
}

// Send writes an object as the whole answer.
func Send(w http.ResponseWriter, code int, object any) {
	b, err := json.Marshal(object)
	if err != nil {
		code, b = http.StatusInternalServerError, []byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(b, '\n')) // a caller that has gone does not want it
}

func refuse(w http.ResponseWriter, s *status) { Send(w, s.Code, s) }
