/*
 * Constraints by the names that Lambda's service model gives its shapes, as string literals for validate.h. Where a
 * recorded refusal quotes another text than the newest model does, the recorded one stands here and says so.
 */
#pragma once

#define LAMBDA_REGION_PATTERN "(eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\\d{1}"

/* Everything in front of a function's name that the name patterns allow. */
#define LAMBDA_FUNCTION_PREFIX_PATTERN \
    "(arn:(aws[a-zA-Z-]*)?:lambda:)?(" LAMBDA_REGION_PATTERN ":)?(\\d{12}:)?(function:)?"

/* FunctionName: CreateFunction, aliases, concurrency, PublishVersion, UpdateFunction*. */
#define LAMBDA_FUNCTION_NAME_MAXIMUM 140
#define LAMBDA_FUNCTION_NAME_PATTERN LAMBDA_FUNCTION_PREFIX_PATTERN "([a-zA-Z0-9-_]+)(:(\\$LATEST|[a-zA-Z0-9-_]+))?"
/* What is left of the name in an ARN; the operation itself checks it (InvalidParameterValueException, recorded). */
#define LAMBDA_BARE_NAME_MAXIMUM 64

/* NamespacedFunctionName (recorded text): GetFunction, DeleteFunction, Invoke, policies, event-invoke configs, ... */
#define LAMBDA_NAMESPACED_FUNCTION_NAME_MAXIMUM 256
#define LAMBDA_NAMESPACED_FUNCTION_NAME_PATTERN \
    LAMBDA_FUNCTION_PREFIX_PATTERN "([a-zA-Z0-9-_\\.]+)(:(\\$LATEST(\\.PUBLISHED)?|[a-zA-Z0-9-_]+))?"

/* UnqualifiedFunctionName: recursion config, scaling config. */
#define LAMBDA_UNQUALIFIED_FUNCTION_NAME_MAXIMUM 140
#define LAMBDA_UNQUALIFIED_FUNCTION_NAME_PATTERN LAMBDA_FUNCTION_PREFIX_PATTERN "([a-zA-Z0-9-_]+)"

/* FunctionUrlFunctionName. */
#define LAMBDA_FUNCTION_URL_FUNCTION_NAME_MAXIMUM 140
#define LAMBDA_FUNCTION_URL_FUNCTION_NAME_PATTERN \
    LAMBDA_FUNCTION_PREFIX_PATTERN "([a-zA-Z0-9-_]{1,64})(:((?!\\d+$)[0-9a-zA-Z-_]+))?"

#define LAMBDA_QUALIFIER_MAXIMUM 128
/* NumericLatestPublishedOrAliasQualifier: Invoke, GetFunction, DeleteFunction, policies, ... (recorded text). */
#define LAMBDA_QUALIFIER_PATTERN "\\$(LATEST(\\.PUBLISHED)?)|[a-zA-Z0-9-_$]+"
/* Qualifier: provisioned concurrency. */
#define LAMBDA_PROVISIONED_QUALIFIER_PATTERN "(|[a-zA-Z0-9$_-]+)"
/* PublishedFunctionQualifier: scaling config. */
#define LAMBDA_PUBLISHED_QUALIFIER_PATTERN "(\\$LATEST\\.PUBLISHED|[0-9]+)"
/* FunctionUrlQualifier (recorded text). */
#define LAMBDA_FUNCTION_URL_QUALIFIER_PATTERN "((?!^\\d+$)^[0-9a-zA-Z-_]+$)"
/* Alias: the name of one. */
#define LAMBDA_ALIAS_MAXIMUM 128
#define LAMBDA_ALIAS_PATTERN "(?!^[0-9]+$)([a-zA-Z0-9-_]+)"
/* Version, VersionWithLatestPublished: FunctionVersion of an alias. */
#define LAMBDA_VERSION_MAXIMUM                       1024
#define LAMBDA_VERSION_PATTERN                       "(\\$LATEST|[0-9]+)"
#define LAMBDA_VERSION_WITH_LATEST_PUBLISHED_PATTERN "(\\$LATEST(\\.PUBLISHED)?|[0-9]+)"
/* AdditionalVersion: the keys of AdditionalVersionWeights. */
#define LAMBDA_ADDITIONAL_VERSION_PATTERN "[0-9]+"

#define LAMBDA_ARN_PREFIX_PATTERN   "arn:(aws[a-zA-Z-]*)?:lambda:" LAMBDA_REGION_PATTERN ":\\d{12}:"
#define LAMBDA_FUNCTION_ARN_PATTERN LAMBDA_ARN_PREFIX_PATTERN "function:[a-zA-Z0-9-_]+(:(\\$LATEST|[a-zA-Z0-9-_]+))?"

#define LAMBDA_LAYER_NAME_MAXIMUM        140
#define LAMBDA_LAYER_NAME_PATTERN        "(" LAMBDA_ARN_PREFIX_PATTERN "layer:[a-zA-Z0-9-_]+)|[a-zA-Z0-9-_]+"
#define LAMBDA_LAYER_VERSION_ARN_MAXIMUM 2048
/* As recorded; the newest model has one more pair of brackets around it. */
#define LAMBDA_LAYER_VERSION_ARN_PATTERN                         \
    "(" LAMBDA_ARN_PREFIX_PATTERN "layer:[a-zA-Z0-9-_]+:[0-9]+)" \
    "|(arn:[a-zA-Z0-9-]+:lambda:::awslayer:[a-zA-Z0-9-_]+)"

#define LAMBDA_ROLE_ARN_PATTERN          "arn:(aws[a-zA-Z-]*)?:iam::\\d{12}:role/?[a-zA-Z_0-9+=,.@\\-_/]+"
#define LAMBDA_HANDLER_MAXIMUM           128
#define LAMBDA_HANDLER_PATTERN           "[^\\s]+"
#define LAMBDA_LICENSE_INFO_MAXIMUM      512
#define LAMBDA_DESCRIPTION_MAXIMUM       256
#define LAMBDA_KMS_KEY_ARN_PATTERN       "(arn:(aws[a-zA-Z-]*)?:[a-z0-9-.]+:.*)|()"
#define LAMBDA_RESOURCE_ARN_PATTERN      "(arn:(aws[a-zA-Z-]*)?:[a-z0-9-.]+:.*)|()"
#define LAMBDA_ENVIRONMENT_NAME_PATTERN  "[a-zA-Z]([a-zA-Z0-9_])+"
#define LAMBDA_LOG_GROUP_MAXIMUM         512
#define LAMBDA_LOG_GROUP_PATTERN         "[\\.\\-_/#A-Za-z0-9]+"
#define LAMBDA_LOCAL_MOUNT_PATH_MAXIMUM  160
#define LAMBDA_LOCAL_MOUNT_PATH_PATTERN  "/mnt/[a-zA-Z0-9-_.]+"
#define LAMBDA_S3_BUCKET_MINIMUM         3
#define LAMBDA_S3_BUCKET_MAXIMUM         63
#define LAMBDA_S3_BUCKET_PATTERN         "[0-9A-Za-z\\.\\-_]*(?<!\\.)"
#define LAMBDA_S3_KEY_MAXIMUM            1024
#define LAMBDA_SECURITY_GROUP_ID_PATTERN "sg-[0-9a-zA-Z]*"
#define LAMBDA_SUBNET_ID_PATTERN         "subnet-[0-9a-z]*"

#define LAMBDA_FILE_SYSTEM_ARN_MAXIMUM 256
#define LAMBDA_FILE_SYSTEM_ARN_PATTERN                           \
    "arn:aws[a-zA-Z-]*:elasticfilesystem:" LAMBDA_REGION_PATTERN \
    ":\\d{12}:access-point/fsap-[a-f0-9]{17}$|^arn:aws[-a-z]*"   \
    ":s3files:[0-9a-z-:]+:file-system/fs-[0-9a-f]{17,40}/access-point/fsap-[0-9a-f]{17,40}"
#define LAMBDA_CAPACITY_PROVIDER_ARN_MAXIMUM 140
#define LAMBDA_CAPACITY_PROVIDER_ARN_PATTERN \
    "arn:aws[a-zA-Z-]*:lambda:" LAMBDA_REGION_PATTERN ":\\d{12}:capacity-provider:[a-zA-Z0-9-_]+"
#define LAMBDA_TENANT_ID_MAXIMUM              256
#define LAMBDA_TENANT_ID_PATTERN              "[a-zA-Z0-9\\._:\\/=+\\-@ ]+"
#define LAMBDA_DURABLE_EXECUTION_NAME_MAXIMUM 64
#define LAMBDA_DURABLE_EXECUTION_NAME_PATTERN "[a-zA-Z0-9-_]+"
#define LAMBDA_MASTER_REGION_MAXIMUM          50
#define LAMBDA_MASTER_REGION_PATTERN          "ALL|" LAMBDA_REGION_PATTERN

/* Arn: event sources. DestinationArn: event-invoke configs and on-failure destinations. */
#define LAMBDA_ARN_MAXIMUM             10000
#define LAMBDA_ARN_PATTERN             "arn:(aws[a-zA-Z0-9-]*):([a-zA-Z0-9\\-])+:(" LAMBDA_REGION_PATTERN ")?:(\\d{12})?:(.*)"
#define LAMBDA_DESTINATION_ARN_MAXIMUM 350
#define LAMBDA_DESTINATION_ARN_PATTERN "$|kafka://([^.]([a-zA-Z0-9\\-_.]{0,248}))|" LAMBDA_ARN_PATTERN

/* AddPermission and RemovePermission. */
#define LAMBDA_STATEMENT_ID_MAXIMUM            100
#define LAMBDA_STATEMENT_ID_PATTERN            "([a-zA-Z0-9-_]+)"
#define LAMBDA_NAMESPACED_STATEMENT_ID_PATTERN "([a-zA-Z0-9-_.]+)"
#define LAMBDA_ACTION_MAXIMUM                  10000
#define LAMBDA_ACTION_PATTERN                  "(lambda:[*]|lambda:[a-zA-Z]+|[*])"
#define LAMBDA_PRINCIPAL_MAXIMUM               2048
#define LAMBDA_PRINCIPAL_PATTERN               "[^\\s]+"
#define LAMBDA_SOURCE_ACCOUNT_MAXIMUM          12
#define LAMBDA_SOURCE_ACCOUNT_PATTERN          "\\d{12}"
#define LAMBDA_EVENT_SOURCE_TOKEN_MAXIMUM      256
#define LAMBDA_EVENT_SOURCE_TOKEN_PATTERN      "[a-zA-Z0-9._\\-]+"
#define LAMBDA_PRINCIPAL_ORG_ID_MINIMUM        12
#define LAMBDA_PRINCIPAL_ORG_ID_MAXIMUM        34
#define LAMBDA_PRINCIPAL_ORG_ID_PATTERN        "o-[a-z0-9]{10,32}"
#define LAMBDA_LAYER_PERMISSION_ACTION_MAXIMUM 22
#define LAMBDA_LAYER_PERMISSION_ACTION_PATTERN "lambda:GetLayerVersion"
#define LAMBDA_LAYER_PRINCIPAL_MAXIMUM         10000
#define LAMBDA_LAYER_PRINCIPAL_PATTERN         "\\d{12}|\\*|arn:(aws[a-zA-Z-]*):iam::\\d{12}:root"
#define LAMBDA_ORGANIZATION_ID_MAXIMUM         34
#define LAMBDA_ORGANIZATION_ID_PATTERN         "o-[a-z0-9]{10,32}"

/* Event source mappings: URI (of SourceAccessConfigurations), Topic, Queue, Endpoint, DocumentDB's names, ... */
#define LAMBDA_ACCESS_URI_MAXIMUM          200
#define LAMBDA_ACCESS_URI_PATTERN          "[ a-zA-Z0-9-\\/*:_+=.@-]*"
#define LAMBDA_SCHEMA_REGISTRY_URI_PATTERN "[a-zA-Z0-9-\\/*:_+=.@-]*"
#define LAMBDA_TOPIC_PATTERN               "[^.]([a-zA-Z0-9\\-_.]+)"
#define LAMBDA_QUEUE_PATTERN               "[\\s\\S]*"
#define LAMBDA_ENDPOINT_PATTERN                                 \
    "(([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\\-]*[a-zA-Z0-9])\\.)*" \
    "([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9\\-]*[A-Za-z0-9]):[0-9]{1,5}"
#define LAMBDA_DATABASE_NAME_PATTERN   "[^ /\\.$\\x22]*"
#define LAMBDA_COLLECTION_NAME_PATTERN "(^(?!(system\\x2e)))(^[_a-zA-Z0-9])([^$]*)"
#define LAMBDA_POLLER_GROUP_PATTERN    "[a-zA-Z0-9-_]*"

#define LAMBDA_UUID_LENGTH                 36
#define LAMBDA_FILTER_PATTERN_MAXIMUM      4096
#define LAMBDA_CODE_SIGNING_ARN_MAXIMUM    200
#define LAMBDA_CODE_SIGNING_ARN_PATTERN    LAMBDA_ARN_PREFIX_PATTERN "code-signing-config:csc-[a-z0-9]{17}"
#define LAMBDA_RUNTIME_VERSION_ARN_MINIMUM 26
#define LAMBDA_RUNTIME_VERSION_ARN_MAXIMUM 2048
#define LAMBDA_RUNTIME_VERSION_ARN_PATTERN "arn:(aws[a-zA-Z-]*):lambda:" LAMBDA_REGION_PATTERN "::runtime:.+"

/* TaggableResource, as recorded in November 2025. */
#define LAMBDA_TAGGABLE_RESOURCE_PATTERN                                                                      \
    "arn:(aws[a-zA-Z-]*):lambda:" LAMBDA_REGION_PATTERN                                                       \
    ":\\d{12}:(function:[a-zA-Z0-9-_]+(:(\\$LATEST|[a-zA-Z0-9-_]+))?|layer:([a-zA-Z0-9-_]+)|"                 \
    "code-signing-config:csc-[a-z0-9]{17}|event-source-mapping:[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-" \
    "[0-9a-fA-F]{4}-[0-9a-fA-F]{12}|capacity-provider:[a-zA-Z0-9-_]+)"
#define LAMBDA_TAGGABLE_RESOURCE_MAXIMUM 10000
#define LAMBDA_TAG_KEY_MAXIMUM           128
#define LAMBDA_TAG_VALUE_MAXIMUM         256
#define LAMBDA_TAG_PATTERN               "([\\p{L}\\p{Z}\\p{N}_.:/=+\\-@]*)"
