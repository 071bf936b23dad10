"""Errors of brokers, of the cluster's administration and of security, one class for each code."""

from kavka.client.kafka_error import AuthenticationError, AuthorizationError, FatalError, KafkaError, RetriableError
from kavka.protocol.errors import ErrorCode


class UnknownServerError(KafkaError, code=ErrorCode.UNKNOWN_SERVER_ERROR):
    """The broker met something that it did not expect; its log says what. Also any code that is not known here."""


class BrokerNotAvailableError(KafkaError, code=ErrorCode.BROKER_NOT_AVAILABLE):
    """The broker is not there."""


class ControllerMovedError(KafkaError, code=ErrorCode.STALE_CONTROLLER_EPOCH):
    """Another controller has taken over."""


class ClusterAuthorizationError(AuthorizationError, FatalError, code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
    """The principal may not do this with the cluster."""


class UnsupportedSaslMechanismError(AuthenticationError, code=ErrorCode.UNSUPPORTED_SASL_MECHANISM):
    """The broker does not have the SASL mechanism."""


class IllegalSaslStateError(AuthenticationError, code=ErrorCode.ILLEGAL_SASL_STATE):
    """A request that does not belong into this state of the SASL exchange."""


class InvalidConfigurationError(KafkaError, code=ErrorCode.INVALID_CONFIG):
    """The broker refuses a setting's value."""


class NotControllerError(RetriableError, code=ErrorCode.NOT_CONTROLLER):
    """The broker that was asked is not the controller, or not any more."""


class InvalidRequestError(KafkaError, code=ErrorCode.INVALID_REQUEST):
    """The broker makes no sense of the request; its log may say why."""


class PolicyViolationError(KafkaError, code=ErrorCode.POLICY_VIOLATION):
    """A policy that the broker is set up with forbids it."""


class SecurityDisabledError(KafkaError, code=ErrorCode.SECURITY_DISABLED):
    """The brokers have no authorizer."""


class OperationNotAttemptedError(KafkaError, code=ErrorCode.OPERATION_NOT_ATTEMPTED):
    """Not tried, as something before it in the request has failed."""


class SaslAuthenticationError(AuthenticationError, code=ErrorCode.SASL_AUTHENTICATION_FAILED):
    """The broker did not accept the credentials."""


class DelegationTokenDisabledError(KafkaError, code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED):
    """The brokers have no delegation tokens."""


class DelegationTokenNotFoundError(KafkaError, code=ErrorCode.DELEGATION_TOKEN_NOT_FOUND):
    """There is no such delegation token."""


class DelegationTokenOwnerMismatchError(KafkaError, code=ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH):
    """The delegation token is another principal's."""


class DelegationTokenRequestNotAllowedError(KafkaError, code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED):
    """Delegation tokens are not given over this kind of connection."""


class DelegationTokenAuthorizationError(AuthorizationError, code=ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED):
    """The principal may not do this with the delegation token."""


class DelegationTokenExpiredError(KafkaError, code=ErrorCode.DELEGATION_TOKEN_EXPIRED):
    """The delegation token is not valid any more."""


class InvalidPrincipalTypeError(KafkaError, code=ErrorCode.INVALID_PRINCIPAL_TYPE):
    """A principal of this type cannot be used here."""


class StaleBrokerEpochError(KafkaError, code=ErrorCode.STALE_BROKER_EPOCH):
    """The broker has registered anew."""


class ThrottlingQuotaExceededError(RetriableError, code=ErrorCode.THROTTLING_QUOTA_EXCEEDED):
    """More is asked for than a quota allows: to be tried later."""


class ResourceNotFoundError(KafkaError, code=ErrorCode.RESOURCE_NOT_FOUND):
    """There is no such user, or other thing that has settings."""


class DuplicateResourceError(KafkaError, code=ErrorCode.DUPLICATE_RESOURCE):
    """The request names a thing twice."""


class UnacceptableCredentialError(KafkaError, code=ErrorCode.UNACCEPTABLE_CREDENTIAL):
    """A credential that the broker does not take."""


class InconsistentVoterSetError(KafkaError, code=ErrorCode.INCONSISTENT_VOTER_SET):
    """The voters are others than those the request names."""


class InvalidUpdateVersionError(KafkaError, code=ErrorCode.INVALID_UPDATE_VERSION):
    """A version that the feature cannot have."""


class FeatureUpdateFailedError(KafkaError, code=ErrorCode.FEATURE_UPDATE_FAILED):
    """The feature's version could not be changed."""


class PrincipalDeserializationError(KafkaError, code=ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE):
    """The controller could not read for whom a request was forwarded."""


class SnapshotNotFoundError(KafkaError, code=ErrorCode.SNAPSHOT_NOT_FOUND):
    """The controller has no such snapshot."""


class DuplicateBrokerRegistrationError(KafkaError, code=ErrorCode.DUPLICATE_BROKER_REGISTRATION):
    """Another broker is registered by this id."""


class BrokerIdNotRegisteredError(KafkaError, code=ErrorCode.BROKER_ID_NOT_REGISTERED):
    """No broker is registered by this id."""


class InconsistentClusterIdError(KafkaError, code=ErrorCode.INCONSISTENT_CLUSTER_ID):
    """The request is meant for another cluster."""


class IneligibleReplicaError(KafkaError, code=ErrorCode.INELIGIBLE_REPLICA):
    """The replica may not be in sync: its broker is fenced, or shutting down."""


class MismatchedEndpointTypeError(KafkaError, code=ErrorCode.MISMATCHED_ENDPOINT_TYPE):
    """A broker was asked for what a controller has, or the other way about."""


class UnsupportedEndpointTypeError(KafkaError, code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE):
    """Endpoints of this type are not known there."""


class UnknownControllerIdError(KafkaError, code=ErrorCode.UNKNOWN_CONTROLLER_ID):
    """No controller is registered by this id."""


class UnknownSubscriptionIdError(KafkaError, code=ErrorCode.UNKNOWN_SUBSCRIPTION_ID):
    """The broker wants other metrics pushed by now."""


class TelemetryTooLargeError(KafkaError, code=ErrorCode.TELEMETRY_TOO_LARGE):
    """More metrics were pushed than the broker takes."""


class InvalidRegistrationError(KafkaError, code=ErrorCode.INVALID_REGISTRATION):
    """The controller does not take the broker's registration."""


class InvalidVoterKeyError(KafkaError, code=ErrorCode.INVALID_VOTER_KEY):
    """The voter's key is not the request's."""


class DuplicateVoterError(KafkaError, code=ErrorCode.DUPLICATE_VOTER):
    """There is this voter already."""


class VoterNotFoundError(KafkaError, code=ErrorCode.VOTER_NOT_FOUND):
    """There is no such voter."""


class RebootstrapRequiredError(KafkaError, code=ErrorCode.REBOOTSTRAP_REQUIRED):
    """The client has to begin anew with its bootstrap servers (KIP-1102)."""
