"""DescribeAcls, CreateAcls and DeleteAcls."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from kavka.client.admin.operation import (
    Answered,
    Operation,
    Outcome,
    check,
    error_or,
)
from kavka.client.admin.types.acls import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    DeletedAcl,
    PatternType,
    ResourceType,
)
from kavka.client.api_errors import error_of
from kavka.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from kavka.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kavka.protocol.messages.describe_acls import DescribeAclsRequest
from kavka.protocol.schema import Request

VERSIONS: Final = (1, 3)
"""Version 0 knows no prefixes (before Kafka 2.0)."""


def describe_acls(wanted: AclBindingFilter) -> Operation[AclBindingFilter, list[AclBinding]]:
    def request(_items: Sequence[AclBindingFilter], _timeout_ms: int) -> Request:
        return DescribeAclsRequest(
            resource_type_filter=wanted.resource_type,
            resource_name_filter=wanted.resource_name,
            pattern_type_filter=wanted.pattern_type,
            principal_filter=wanted.principal,
            host_filter=wanted.host,
            operation=wanted.operation,
            permission_type=wanted.permission,
        )

    def read(answered: Answered[AclBindingFilter]) -> Iterator[tuple[AclBindingFilter, list[AclBinding]]]:
        check(answered.body.error_code, answered.body.error_message)
        yield (
            wanted,
            [_binding(resource, entry) for resource in answered.body.resources for entry in resource.acls],
        )

    return Operation("describing ACLs", [wanted], request=request, read=read, versions=VERSIONS)


def _binding(resource: Any, entry: Any) -> AclBinding:
    return AclBinding(
        ResourceType(resource.resource_type),
        resource.resource_name,
        entry.principal,
        AclOperation(entry.operation),
        AclPermissionType(entry.permission_type),
        entry.host,
        PatternType(resource.pattern_type),
    )


def create_acls(bindings: Sequence[AclBinding]) -> Operation[AclBinding, None]:
    def request(asked: Sequence[AclBinding], _timeout_ms: int) -> Request:
        return CreateAclsRequest(
            creations=[
                AclCreation(
                    resource_type=binding.resource_type,
                    resource_name=binding.resource_name,
                    resource_pattern_type=binding.pattern_type,
                    principal=binding.principal,
                    host=binding.host,
                    operation=binding.operation,
                    permission_type=binding.permission,
                )
                for binding in asked
            ]
        )

    def read(answered: Answered[AclBinding]) -> Iterator[tuple[AclBinding, Outcome[None]]]:
        # In the order of the request.
        for binding, row in zip(answered.items, answered.body.results, strict=False):
            yield binding, error_or(row, None)

    return Operation("creating ACLs", bindings, request=request, read=read, versions=VERSIONS)


def delete_acls(filters: Sequence[AclBindingFilter]) -> Operation[AclBindingFilter, list[DeletedAcl]]:
    def request(asked: Sequence[AclBindingFilter], _timeout_ms: int) -> Request:
        return DeleteAclsRequest(
            filters=[
                DeleteAclsFilter(
                    resource_type_filter=each.resource_type,
                    resource_name_filter=each.resource_name,
                    pattern_type_filter=each.pattern_type,
                    principal_filter=each.principal,
                    host_filter=each.host,
                    operation=each.operation,
                    permission_type=each.permission,
                )
                for each in asked
            ]
        )

    def read(answered: Answered[AclBindingFilter]) -> Iterator[tuple[AclBindingFilter, Outcome[list[DeletedAcl]]]]:
        for wanted, row in zip(answered.items, answered.body.filter_results, strict=False):
            yield wanted, error_or(row, [_deleted(each) for each in row.matching_acls])

    return Operation(
        "deleting ACLs",
        filters,
        request=request,
        read=read,
        versions=VERSIONS,
        # The second answer would not tell what the first request deleted.
        repeatable=False,
    )


def _deleted(row: Any) -> DeletedAcl:
    return DeletedAcl(_binding(row, row), error_of(row.error_code, row.error_message) if row.error_code else None)
