"""An interface's life, by boto3 on an instance: life.py EC2-ENDPOINT METADATA-ENDPOINT. Credentials come from metadata."""

import sys
import urllib.request

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

endpoint, metadata = sys.argv[1:]


def read(path):
    """What instance metadata says, by version 2."""
    ask = urllib.request.Request(metadata + "/latest/api/token", method="PUT",
                                 headers={"X-aws-ec2-metadata-token-ttl-seconds": "60"})
    token = urllib.request.urlopen(ask).read().decode()
    ask = urllib.request.Request(metadata + "/latest/meta-data/" + path, headers={"X-aws-ec2-metadata-token": token})
    return urllib.request.urlopen(ask).read().decode()


ec2 = boto3.client("ec2", endpoint_url=endpoint, config=Config(retries={"total_max_attempts": 2}))
me = read("instance-id")
method = boto3.session.Session().get_credentials().method
assert method == "iam-role", method
mac = read("mac")
subnet = read("network/interfaces/macs/%s/subnet-id" % mac)

eni = ec2.create_network_interface(SubnetId=subnet, Description="made by boto3", SecondaryPrivateIpAddressCount=1)["NetworkInterface"]
name = eni["NetworkInterfaceId"]
ec2.get_waiter("network_interface_available").wait(NetworkInterfaceIds=[name])
attachment = ec2.attach_network_interface(NetworkInterfaceId=name, InstanceId=me, DeviceIndex=2)["AttachmentId"]
assigned = ec2.assign_private_ip_addresses(NetworkInterfaceId=name, SecondaryPrivateIpAddressCount=3)
assert len(assigned["AssignedPrivateIpAddresses"]) == 3, assigned
shown = ec2.describe_network_interfaces(NetworkInterfaceIds=[name])["NetworkInterfaces"][0]
assert len(shown["PrivateIpAddresses"]) == 5, shown
assert shown["Attachment"]["InstanceId"] == me and shown["Attachment"]["AttachTime"], shown
assert read("network/interfaces/macs/%s/interface-id" % shown["MacAddress"]) == name
assert len(read("network/interfaces/macs/%s/local-ipv4s" % shown["MacAddress"]).split()) == 5

pages = list(ec2.get_paginator("describe_network_interfaces").paginate(PaginationConfig={"PageSize": 5}))
assert name in [i["NetworkInterfaceId"] for p in pages for i in p["NetworkInterfaces"]]

ec2.detach_network_interface(AttachmentId=attachment)
ec2.delete_network_interface(NetworkInterfaceId=name)
try:
    ec2.delete_network_interface(NetworkInterfaceId=name)
    raise SystemExit("an interface was deleted twice")
except ClientError as e:
    assert e.response["Error"]["Code"] == "InvalidNetworkInterfaceID.NotFound", e
print(boto3.__version__, me)
