"""ACLs, passwords and tokens: requests as brokers see them, answers as callers do."""

import hashlib

import pytest

from kavka.client.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ItemErrors,
    KafkaPrincipal,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kavka.client.admin.areas.security import SecurityArea
from kavka.client.api_errors import (
    ResourceNotFoundError,
    SecurityDisabledError,
    UnknownServerError,
)
from kavka.protocol.messages import (
    alter_user_scram_credentials,
    create_acls,
    create_delegation_token,
    delete_acls,
    describe_acls,
    describe_user_scram_credentials,
    expire_delegation_token,
)
from tests.support.admin_stage import AdminStage, in_turn

READ = AclBinding(ResourceType.TOPIC, "t", "User:a", AclOperation.READ)
WRITE = READ._replace(operation=AclOperation.WRITE, permission=AclPermissionType.DENY)


def test_acls_are_created_in_the_order_asked_for_even_if_answers_are_cut_short() -> None:
    stage = AdminStage()
    rows = [create_acls.AclCreationResult(error_code=0, error_message=None)]
    stage.network.answer(create_acls.CreateAclsRequest, in_turn(create_acls.CreateAclsResponse(results=rows)))

    with pytest.raises(ItemErrors) as failed:
        stage.area(SecurityArea).create_acls([READ, WRITE])

    assert failed.value.results == {READ: None}
    assert isinstance(failed.value.errors[WRITE], UnknownServerError)


def test_acls_are_described_and_deleted_by_filters() -> None:
    stage = AdminStage()
    area = stage.area(SecurityArea)
    entry = describe_acls.AclDescription(principal="User:a", host="*", operation=99, permission_type=3)
    resource = describe_acls.DescribeAclsResource(resource_type=2, resource_name="t", pattern_type=3, acls=[entry])
    described = describe_acls.DescribeAclsResponse(error_code=0, error_message=None, resources=[resource])
    refused = describe_acls.DescribeAclsResponse(error_code=54, error_message="no authorizer", resources=[])
    stage.network.answer(describe_acls.DescribeAclsRequest, in_turn(described, refused))

    assert area.describe_acls(AclBindingFilter(resource_name="t")) == [READ._replace(operation=AclOperation.UNKNOWN)]
    with pytest.raises(SecurityDisabledError, match="no authorizer"):
        area.describe_acls()

    matched = delete_acls.DeleteAclsMatchingAcl(
        error_code=0,
        error_message=None,
        resource_type=2,
        resource_name="t",
        pattern_type=3,
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    result = delete_acls.DeleteAclsFilterResult(error_code=0, error_message=None, matching_acls=[matched])
    response = delete_acls.DeleteAclsResponse(filter_results=[result])
    stage.network.answer(delete_acls.DeleteAclsRequest, in_turn(response))
    everything = AclBindingFilter()
    assert [each.binding for each in area.delete_acls([everything])[everything]] == [READ]


def test_passwords_are_salted_and_hashed_here() -> None:
    stage = AdminStage()
    area = stage.area(SecurityArea)
    request = alter_user_scram_credentials.AlterUserScramCredentialsRequest
    rows = [
        alter_user_scram_credentials.AlterUserScramCredentialsResult(user=user, error_code=code, error_message=None)
        for user, code in (("a", 0), ("b", 91))
    ]
    response = alter_user_scram_credentials.AlterUserScramCredentialsResponse(results=rows)
    stage.network.answer(request, in_turn(response))
    wanted = UserScramCredentialUpsertion("a", ScramMechanism.SCRAM_SHA_256, "secret", 4096, b"salt")

    with pytest.raises(ItemErrors) as failed:
        area.alter_user_scram_credentials([wanted], [UserScramCredentialDeletion("b", ScramMechanism.SCRAM_SHA_512)])

    assert isinstance(failed.value.errors["b"], ResourceNotFoundError)
    (asked,) = stage.network.requests(request)
    (row,) = asked.request.upsertions
    assert row.salted_password == hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 4096)
    assert "secret" not in repr(wanted)
    with pytest.raises(ValueError, match="UNKNOWN"):
        area.alter_user_scram_credentials([wanted._replace(mechanism=ScramMechanism.UNKNOWN)])


def test_users_without_credentials_are_errors_of_their_own() -> None:
    stage = AdminStage()
    results = [
        describe_user_scram_credentials.DescribeUserScramCredentialsResult(
            user=user,
            error_code=code,
            error_message=None,
            credential_infos=[describe_user_scram_credentials.CredentialInfo(mechanism=2, iterations=8192)],
        )
        for user, code in (("a", 0), ("b", 91))
    ]
    response = describe_user_scram_credentials.DescribeUserScramCredentialsResponse(
        error_code=0, error_message=None, results=results
    )
    stage.network.answer(describe_user_scram_credentials.DescribeUserScramCredentialsRequest, in_turn(response))

    with pytest.raises(ItemErrors) as failed:
        stage.area(SecurityArea).describe_user_scram_credentials(["a", "b"])

    assert failed.value.results["a"] == (ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192),)


def test_delegation_tokens_are_made_for_others_and_expired() -> None:
    stage = AdminStage()
    area = stage.area(SecurityArea)
    token = create_delegation_token.CreateDelegationTokenResponse(
        error_code=0,
        principal_type="User",
        principal_name="bob",
        token_requester_principal_type="User",
        token_requester_principal_name="alice",
        issue_timestamp_ms=1,
        expiry_timestamp_ms=2,
        max_timestamp_ms=3,
        token_id="id",
        hmac=b"h",
    )
    stage.network.answer(create_delegation_token.CreateDelegationTokenRequest, in_turn(token))
    expired = expire_delegation_token.ExpireDelegationTokenResponse(error_code=0, expiry_timestamp_ms=9)
    stage.network.answer(expire_delegation_token.ExpireDelegationTokenRequest, in_turn(expired))

    made = area.create_delegation_token(
        owner=KafkaPrincipal.parse("User:bob"), renewers=[KafkaPrincipal("User", "carol")]
    )

    assert (str(made.owner), str(made.requester), made.renewers) == (
        "User:bob",
        "User:alice",
        (KafkaPrincipal("User", "carol"),),
    )
    assert "b'h'" not in repr(made)
    assert area.expire_delegation_token(made.hmac) == 9
    with pytest.raises(ValueError, match="Type:name"):
        KafkaPrincipal.parse("bob")
