// Package cloud asks EC2 and instance metadata on behalf of ipam: it carries out a Call and answers Looks, through aws-sdk-go-v2.
//
// # One request per Call
//
// The SDK repeats nothing here (aws.NopRetryer) and makes no client token of its own; the caller decides what is
// repeated with the whole node in view (ipam). A method has at most one HTTP request under way at a time, whatever it
// needs: credentials, then EC2; one leaf of metadata after another.
//
// # What an answer means
//
// Every outcome is an ipam.Class. What decides is what is known about the request, not which layer complained:
//
//	no connection was had (DNS, refused, TLS, a time-out before that)    Unavailable: EC2 has not heard of it
//	a connection was had and no whole answer came                        Lost: it may have happened, or may still
//	a success whose text is cut off or is not EC2's                      Lost: it happened, what it gave is unknown
//	an error with EC2's code                                             by its code (class.go)
//	an error without one, as a proxy gives it                            by its HTTP status
//	credentials cannot be had                                            Denied, and the code says so
//
// Lists are whole or are errors. Metadata that lists a MAC without its leaves is whole: that ENI is Partial (ec2-net-utils#38).
//
// # Where it asks
//
// The endpoints are the SDK's own: AWS_ENDPOINT_URL_EC2, AWS_ENDPOINT_URL_STS, AWS_ENDPOINT_URL, AWS_EC2_METADATA_SERVICE_ENDPOINT,
// and amazon-vpc-cni-k8s's AWS_EC2_ENDPOINT; AWS_USE_DUALSTACK_ENDPOINT, AWS_USE_FIPS_ENDPOINT, AWS_CA_BUNDLE and HTTPS_PROXY are
// obeyed. Credentials come, in this order, from AWS_ACCESS_KEY_ID, from a web identity (AWS_WEB_IDENTITY_TOKEN_FILE and
// AWS_ROLE_ARN: EKS's roles for service accounts), from AWS_CONTAINER_CREDENTIALS_FULL_URI (EKS pod identity), or from the
// instance's role. Files of a home directory are not read: a daemon has none, and the SDK's config package that reads them costs
// 2.5 MB of memory.
package cloud
