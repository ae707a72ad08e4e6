// Package server speaks EC2's Query protocol (API version 2016-11-15) for the model in fakes/ec2, as aws-sdk-go-v2 and the
// command line tools do.
//
//	srv := server.Server(server.New(server.Options{}, backend))
//	go srv.Serve(listener)       // clients: AWS_ENDPOINT_URL_EC2=http://…
//
// The Backend makes a request travel and calls the model; everything that EC2 decides is decided there. This package
// decides what EC2's front does before and after: signatures are looked at, parameters of a POST or a GET parsed and checked by
// name and form, filters applied, answers cut into pages.
//
// # What it promises
//
// It is stricter than EC2. An action that the API has (actions.txt) and the model has not is UnsupportedOperation. A
// parameter that the API does not have is UnknownParameter, one that it has and the model has not is
// UnsupportedOperation, one that is given twice is MalformedQueryString. A filter that the API does not have, or that
// is not modelled, is InvalidParameterValue, never a filter that matches everything. A list longer than pageLimit is
// cut also when no pages were asked for. Each page is a request of its own: it costs a token and reads another
// replica, so that a page may repeat or miss what changed in between. A caller that asks for pages (MaxResults) is
// charged as for a filtered list, as EC2 does. A token of another question is refused.
//
// No body makes it panic, and none larger than maxBody is read. A Response that is Lost, or an error of the Backend, ends the
// connection without an answer.
//
// Sources: "Query requests", "Common errors", "Error codes for the Amazon EC2 API", "List and filter using the
// CLI and API" and the actions of the Amazon EC2 API reference; "Authenticating requests (AWS Signature Version 4)".
//
// # Signatures, times, accounts
//
// Options say what the front knows beyond the protocol. With Keys, a signature of version 4 is verified, in a header or in the
// query of a presigned GET: a wrong one, or of an unknown key, is AuthFailure; with Clock, one that is older or newer than 15
// minutes is RequestExpired. With Epoch, the model's instants are shown as times. Whose account and region a call is for, the
// Backend reads from the Signer.
//
// # What it leaves out
//
// Disks, keys, profiles, rules of groups and public addresses: the model has none, a request that asks for them is refused, and their
// elements, which are optional, are absent from answers. An image exists whatever its identifier. Names of security groups are in
// DescribeSecurityGroups only.
package server
