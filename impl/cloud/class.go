package cloud

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/aws/smithy-go"

	"github.com/enilab/enilab/impl/ipam"
)

// classify is the class of what became of a request, and EC2's code or, where it gave none, what there is to say instead.
func classify(err error, x *exchange) (ipam.Class, string) {
	var none *noCredentials
	var api smithy.APIError
	var params smithy.InvalidParamsError
	switch {
	case err == nil:
		return ipam.OK, ""
	case errors.As(err, &none):
		return ipam.Denied, none.Error()
	case errors.As(err, &params):
		return ipam.Invalid, params.Error()
	case x.status == 0 && x.unsent():
		return ipam.Unavailable, "not sent: " + shortened(cause(err, x)).Error()
	case x.status == 0:
		return ipam.Lost, "no answer: " + shortened(cause(err, x)).Error()
	case x.status/100 == 2:
		return ipam.Lost, shortened(cause(err, x)).Error()
	case errors.As(err, &api) && named(api.ErrorCode()):
		return ipam.ClassOf(api.ErrorCode(), api.ErrorMessage(), x.status), api.ErrorCode()
	}
	return classOfStatus(x.status), "HTTP " + strconv.Itoa(x.status)
}

// named says whether an error has a code of EC2's own, not the SDK's word for none.
func named(code string) bool { return code != "" && code != "UnknownError" }

// classOfStatus sorts answers without a code: a proxy's, or an error that is cut off. Such a 400 does not say that repeating is
// useless, so it is not Invalid.
func classOfStatus(status int) ipam.Class {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return ipam.Throttled
	case http.StatusUnauthorized, http.StatusForbidden:
		return ipam.Denied
	}
	return ipam.Unavailable
}

// cause is the transport's error where there is one, else the SDK's.
func cause(err error, x *exchange) error {
	if x.err != nil {
		return x.err
	}
	return err
}

// shortened is an error without the SDK's frames around the URL that was asked. The text of a request names the address and the
// reason; credentials are in headers, never in it.
func shortened(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u
	}
	return err
}
