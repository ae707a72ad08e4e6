package grpclite

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Codes of gRPC that are told apart here (grpc.io, "Status codes").
const (
	OK               = 0
	Unknown          = 2
	DeadlineExceeded = 4
	NotFound         = 5
	Unimplemented    = 12
	Internal         = 13
	Unavailable      = 14
)

var codeNames = [...]string{"OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists", "PermissionDenied",
	"ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal", "Unavailable", "DataLoss", "Unauthenticated"}

// Error is a call that failed, with the text that crictl and kubelet would show.
type Error struct {
	Code     int // gRPC's
	Message  string
	Answered bool // the other side said so: it has had the question

	err error
}

func (e *Error) Error() string {
	name := fmt.Sprintf("Code(%d)", e.Code)
	if e.Code >= 0 && e.Code < len(codeNames) {
		name = codeNames[e.Code]
	}
	return "rpc error: code = " + name + " desc = " + e.Message
}

// Unwrap is what the kernel said, where it did: ENOENT of a socket that is not there, ECONNREFUSED of one without a
// listener.
func (e *Error) Unwrap() error { return e.err }

// CodeOf is the code of an error; OK for nil.
func CodeOf(err error) int {
	var e *Error
	switch {
	case err == nil:
		return OK
	case errors.As(err, &e):
		return e.Code
	}
	return Unknown
}

// failed is an answer that did not come. The socket has the caller's deadline and can end before the caller's context does.
func failed(ctx context.Context, what string, err error) *Error {
	end := ctx.Err()
	if end == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)) { // net has its own name for the first
		end = context.DeadlineExceeded
	}
	if end != nil {
		return &Error{Code: DeadlineExceeded, Message: end.Error(), err: end}
	}
	return &Error{Code: Unavailable, Message: what + ": " + err.Error(), err: err}
}

// nonsense is an answer that is none.
func nonsense(format string, args ...any) *Error {
	return &Error{Code: Internal, Message: fmt.Sprintf(format, args...)}
}
