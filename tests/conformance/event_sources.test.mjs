// Event source mappings: what each kind of source allows, requires and has by default, and the life of a mapping. Whether a
// source exists is not known here, and nothing is polled yet.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import {
  CreateAliasCommand,
  CreateEventSourceMappingCommand,
  DeleteEventSourceMappingCommand,
  DeleteFunctionCommand,
  GetEventSourceMappingCommand,
  ListEventSourceMappingsCommand,
  paginateListEventSourceMappings,
  UpdateEventSourceMappingCommand,
} from '@aws-sdk/client-lambda'
import { createFunction, pythonZip, startKiln, temporaryDirectory } from '../lib/kiln.mjs'
import { rmSync } from 'node:fs'

const CODE = { ZipFile: pythonZip('def handler(event, context):\n    return 1\n') }
const arn = (service, resource) => `arn:aws:${service}:us-east-1:000000000000:${resource}`
const QUEUE = arn('sqs', 'queue')
const FIFO = arn('sqs', 'queue.fifo')
const KINESIS = arn('kinesis', 'stream/s')
const DYNAMODB = arn('dynamodb', 'table/t/stream/2025-01-01T00:00:00.000')
const MSK = arn('kafka', 'cluster/c/uuid')
const MQ = arn('mq', 'broker:b:b-1')
const DOCUMENTDB = arn('rds', 'cluster:c')
const SECRET = arn('secretsmanager', 'secret:s')
const BASIC_AUTH = [{ Type: 'BASIC_AUTH', URI: SECRET }]
const SERVERS = { Endpoints: { KAFKA_BOOTSTRAP_SERVERS: ['a:1', 'b:2'] } }

let dataDir
let kiln

before(async () => {
  dataDir = temporaryDirectory()
  kiln = await startKiln({ dataDir })
  await createFunction(kiln.lambda, { FunctionName: 'fn', Publish: true, Code: CODE })
  await kiln.lambda.send(new CreateAliasCommand({ FunctionName: 'fn', Name: 'live', FunctionVersion: '1' }))
})

after(async () => {
  await kiln?.stop()
  rmSync(dataDir, { recursive: true, force: true })
})

const plain = ({ $metadata, ...answer }) => answer
const send = async (command) => plain(await kiln.lambda.send(command))
const create = (parameters) => send(new CreateEventSourceMappingCommand({ FunctionName: 'fn', ...parameters }))
const update = (UUID, parameters) => send(new UpdateEventSourceMappingCommand({ UUID, ...parameters }))
const get = (UUID) => send(new GetEventSourceMappingCommand({ UUID }))
const remove = (UUID) => send(new DeleteEventSourceMappingCommand({ UUID }))

/** Made, looked at as `look` wants, and deleted. */
async function made(parameters, look = (mapping) => mapping) {
  const mapping = await create(parameters)
  try {
    return await look(mapping)
  } finally {
    await remove(mapping.UUID)
  }
}

async function refused(call, name, message) {
  await assert.rejects(call, (error) => {
    assert.equal(error.message, message)
    assert.equal(error.name, name)
    return true
  })
}

const invalid = (parameters, message) => refused(create(parameters), 'InvalidParameterValueException', message)
const violates = (parameters, violation) =>
  refused(create(parameters), 'ValidationException', `1 validation error detected: ${violation}`)
const unsupported = (name) => `Unsupported '${name}' parameter for given event source mapping type.`

const facts = ({ UUID, EventSourceMappingArn, LastModified, FunctionArn, ...rest }) => rest

describe('defaults', () => {
  const queue = {
    BatchSize: 10, MaximumBatchingWindowInSeconds: 0, FunctionResponseTypes: [], State: 'Creating', StateTransitionReason: 'USER_INITIATED',
  }
  const stream = {
    BatchSize: 100, MaximumBatchingWindowInSeconds: 0, FunctionResponseTypes: [], BisectBatchOnFunctionError: false,
    DestinationConfig: { OnFailure: {} }, MaximumRecordAgeInSeconds: -1, MaximumRetryAttempts: -1, ParallelizationFactor: 1,
    TumblingWindowInSeconds: 0, State: 'Creating', StateTransitionReason: 'User action', LastProcessingResult: 'No records processed',
  }
  const polled = {
    BatchSize: 100, State: 'Creating', StateTransitionReason: 'USER_INITIATED', LastProcessingResult: 'No records processed',
  }

  test('of queues and streams', async () => {
    assert.deepEqual(facts(await made({ EventSourceArn: QUEUE })), { ...queue, EventSourceArn: QUEUE })
    for (const EventSourceArn of [KINESIS, DYNAMODB]) {
      const given = { EventSourceArn, StartingPosition: 'LATEST' }
      assert.deepEqual(facts(await made(given)), { ...stream, ...given })
    }
  })

  test('of clusters and brokers', async () => {
    const msk = { EventSourceArn: MSK, Topics: ['topic'] }
    await made(msk, (mapping) => assert.deepEqual(facts(mapping), {
      ...polled, ...msk, StartingPosition: 'TRIM_HORIZON', AmazonManagedKafkaEventSourceConfig: { ConsumerGroupId: mapping.UUID },
    }))
    const kafka = { SelfManagedEventSource: SERVERS, Topics: ['topic'], SourceAccessConfigurations: BASIC_AUTH }
    await made(kafka, (mapping) => assert.deepEqual(facts(mapping), {
      ...polled, ...kafka, StartingPosition: 'TRIM_HORIZON', SelfManagedKafkaEventSourceConfig: { ConsumerGroupId: mapping.UUID },
    }))
    const mq = { EventSourceArn: MQ, Queues: ['q'], SourceAccessConfigurations: BASIC_AUTH }
    assert.deepEqual(facts(await made(mq)), { ...polled, ...mq })
    const documentDb = {
      EventSourceArn: DOCUMENTDB, SourceAccessConfigurations: BASIC_AUTH, StartingPosition: 'LATEST',
      DocumentDBEventSourceConfig: { DatabaseName: 'd' },
    }
    assert.deepEqual(facts(await made(documentDb)), {
      ...polled, ...documentDb, DocumentDBEventSourceConfig: { DatabaseName: 'd', FullDocument: 'Default' },
    })
  })

  test('of provisioned pollers', async () => {
    const pollers = async (parameters) => (await made(parameters)).ProvisionedPollerConfig
    assert.deepEqual(await pollers({ EventSourceArn: QUEUE, ProvisionedPollerConfig: { MaximumPollers: 9 } }), { MinimumPollers: 2, MaximumPollers: 9 })
    assert.deepEqual(await pollers({ EventSourceArn: MSK, Topics: ['topic'], ProvisionedPollerConfig: { MinimumPollers: 1 } }), { MinimumPollers: 1, MaximumPollers: 200 })
  })
})

test('a mapping has an ARN, the function it was given and a time', async () => {
  await made({ EventSourceArn: QUEUE, FunctionName: 'fn:live' }, (mapping) => {
    assert.equal(mapping.EventSourceMappingArn, arn('lambda', `event-source-mapping:${mapping.UUID}`))
    assert.equal(mapping.FunctionArn, arn('lambda', 'function:fn:live'))
    assert.ok(Math.abs(mapping.LastModified - new Date()) < 60_000)
  })
})

describe('sources', () => {
  test('what is no source is not recognised', async () => {
    for (const EventSourceArn of [undefined, arn('s3', 'bucket'), arn('dynamodb', 'table/t'), arn('kinesis', 's'), arn('mq', 'b')]) {
      await invalid({ EventSourceArn }, 'Unrecognized event source.')
    }
    await violates({ EventSourceArn: 'queue' }, "Value 'queue' at 'eventSourceArn' failed to satisfy constraint: Member must satisfy regular expression pattern: "
      + 'arn:(aws[a-zA-Z0-9-]*):([a-zA-Z0-9\\-])+:((eusc-)?[a-z]{2}((-gov)|(-iso([a-z]?)))?-[a-z]+-\\d{1})?:(\\d{12})?:(.*)')
  })

  test('what a kind does not have is refused by its name', async () => {
    const stream = { EventSourceArn: KINESIS, StartingPosition: 'LATEST' }
    await invalid({ EventSourceArn: QUEUE, ParallelizationFactor: 2 }, unsupported('parallelizationFactor'))
    await invalid({ EventSourceArn: QUEUE, MaximumRetryAttempts: 1 }, unsupported('maximumRetryAttempts'))
    await invalid({ EventSourceArn: QUEUE, Topics: ['topic'] }, unsupported('topics'))
    await invalid({ EventSourceArn: QUEUE, StartingPosition: 'LATEST' }, 'StartingPosition is not valid for SQS event sources.')
    await invalid({ ...stream, ScalingConfig: { MaximumConcurrency: 2 } }, unsupported('scalingConfig'))
    await invalid({ EventSourceArn: MSK, Topics: ['topic'], TumblingWindowInSeconds: 1 }, unsupported('tumblingWindowInSeconds'))
    const onFailure = { OnFailure: { Destination: arn('sqs', 'failures') } }
    const noDestination = 'Unsupported DestinationConfig parameter for given event source mapping type.'
    await invalid({ EventSourceArn: QUEUE, DestinationConfig: onFailure }, noDestination)
    await invalid({ ...stream, DestinationConfig: { OnSuccess: onFailure.OnFailure } }, noDestination)
    assert.deepEqual((await made({ ...stream, DestinationConfig: onFailure })).DestinationConfig, onFailure)
  })

  test('what a kind needs is asked for by its name', async () => {
    const missing = (name) => `Required '${name}' parameter is missing.`
    await invalid({ SelfManagedEventSource: SERVERS, Topics: ['topic'] }, missing('sourceAccessConfigurations'))
    await invalid({ SelfManagedEventSource: SERVERS, SourceAccessConfigurations: BASIC_AUTH }, missing('topics'))
    await invalid({ EventSourceArn: MSK }, missing('topics'))
    await invalid({ EventSourceArn: MQ, SourceAccessConfigurations: BASIC_AUTH }, missing('queues'))
  })

  test('positions are those of the kind', async () => {
    const position = "1 validation error detected: Value null at 'startingPosition' failed to satisfy constraint: Member must not be null."
    await invalid({ EventSourceArn: KINESIS }, position)
    await invalid({ EventSourceArn: DYNAMODB, StartingPosition: 'AT_TIMESTAMP', StartingPositionTimestamp: new Date() }, `Unsupported starting position for arn type: ${DYNAMODB}`)
    await invalid({ EventSourceArn: KINESIS, StartingPosition: 'AT_TIMESTAMP' }, 'Need to specify a timestamp')
    await invalid({ EventSourceArn: KINESIS, StartingPosition: 'AT_TIMESTAMP', StartingPositionTimestamp: new Date(Date.now() + 3_600_000) }, 'StartingPositionTimestamp cannot be in the future.')
    const at = new Date(1_700_000_000_000)
    const mapping = await made({ EventSourceArn: KINESIS, StartingPosition: 'AT_TIMESTAMP', StartingPositionTimestamp: at })
    assert.deepEqual(mapping.StartingPositionTimestamp, at)
  })
})

describe('limits', () => {
  const window = 'Maximum batch window in seconds must be greater than 0 if maximum batch size is greater than 10'
  const stream = { EventSourceArn: DYNAMODB, StartingPosition: 'LATEST' }

  test('batches of queues', async () => {
    await invalid({ EventSourceArn: QUEUE, BatchSize: 11 }, window)
    await invalid({ EventSourceArn: QUEUE, BatchSize: 11, MaximumBatchingWindowInSeconds: 0 }, window)
    assert.equal((await made({ EventSourceArn: QUEUE, BatchSize: 10_000, MaximumBatchingWindowInSeconds: 1 })).BatchSize, 10_000)
    await violates({ EventSourceArn: QUEUE, BatchSize: 10_001 }, "Value '10001' at 'batchSize' failed to satisfy constraint: Member must have value less than or equal to 10000")
    assert.equal((await made({ EventSourceArn: FIFO, BatchSize: 10 })).BatchSize, 10)
    await invalid({ EventSourceArn: FIFO, BatchSize: 11 }, 'Maximum batch size must be between 1 and 10 inclusive')
    await invalid({ EventSourceArn: FIFO, MaximumBatchingWindowInSeconds: 1 }, 'Batching window is not supported for FIFO queues')
  })

  test('concurrency and pollers', async () => {
    await violates({ EventSourceArn: QUEUE, ScalingConfig: { MaximumConcurrency: 1 } }, "Value '1' at 'scalingConfig.maximumConcurrency' failed to satisfy constraint: Member must have value greater than or equal to 2")
    const both = { ScalingConfig: { MaximumConcurrency: 2 }, ProvisionedPollerConfig: { MinimumPollers: 2 } }
    await invalid({ EventSourceArn: QUEUE, ...both }, 'ScalingConfig and ProvisionedPollerConfig cannot be used together.')
    await invalid({ EventSourceArn: QUEUE, ProvisionedPollerConfig: { MinimumPollers: 1 } }, 'MinimumPollers and MaximumPollers must be at least 2 for SQS event sources.')
  })

  test('the age of records', async () => {
    const text = 'MaximumRecordAgeInSeconds must be either -1 (forever) or between 60 and 604800 (inclusive)'
    for (const age of [0, 59]) await invalid({ ...stream, MaximumRecordAgeInSeconds: age }, text)
    for (const age of [-1, 60, 604_800]) assert.equal((await made({ ...stream, MaximumRecordAgeInSeconds: age })).MaximumRecordAgeInSeconds, age)
  })

  test('filters', async () => {
    const filters = (...patterns) => ({ EventSourceArn: QUEUE, FilterCriteria: { Filters: patterns.map((Pattern) => ({ Pattern })) } })
    const good = '{"body": {"a": [1]}}'
    assert.deepEqual((await made(filters(...Array(5).fill(good)))).FilterCriteria.Filters.length, 5)
    await invalid(filters(...Array(6).fill(good)), 'The number of filters exceeds the limit of 5.')
    for (const bad of ['', '{}', 'text', '{"a": "b"}', '{"a": [{"numeric": ["<", "1"]}]}']) await invalid(filters(good, bad), 'Invalid filter pattern definition.')
    await invalid({ EventSourceArn: QUEUE, FilterCriteria: { Filters: [{}] } }, 'Invalid filter pattern definition.')
    assert.equal((await made(filters())).FilterCriteria, undefined)
  })
})

test('the function must be there, with its qualifier', async () => {
  for (const FunctionName of ['other', 'fn:2', 'fn:other']) await invalid({ FunctionName, EventSourceArn: QUEUE }, 'Function does not exist')
  await refused(create({ FunctionName: 'arn:aws:lambda:eu-west-1:000000000000:function:fn', EventSourceArn: QUEUE }), 'ResourceNotFoundException', "Functions from 'eu-west-1' are not reachable in this region ('us-east-1')")
  await violates({ FunctionName: undefined, EventSourceArn: QUEUE }, "Value null at 'functionName' failed to satisfy constraint: Member must not be null")
})

test('a function gets a source once, and so does each of its qualifiers', async () => {
  await made({ EventSourceArn: QUEUE }, async ({ UUID }) => {
    const text = `An event source mapping with SQS arn (" ${QUEUE} ") and function (" fn ") already exists. Please update or delete the existing mapping with UUID ${UUID}`
    await refused(create({ EventSourceArn: QUEUE }), 'ResourceConflictException', text)
    await refused(create({ EventSourceArn: QUEUE, FunctionName: arn('lambda', 'function:fn') }), 'ResourceConflictException', text)
    await made({ EventSourceArn: QUEUE, FunctionName: 'fn:live' }, async (other) => {
      await refused(update(other.UUID, { FunctionName: 'fn' }), 'ResourceConflictException', text)
      assert.equal((await get(other.UUID)).FunctionArn, arn('lambda', 'function:fn:live'))
    })
  })
  const racing = await Promise.allSettled([1, 2, 3].map(() => create({ EventSourceArn: QUEUE })))
  const winners = racing.filter(({ status }) => status === 'fulfilled')
  assert.equal(winners.length, 1)
  await remove(winners[0].value.UUID)
})

test('a mapping is enabled, disabled and deleted', async () => {
  const { UUID, State } = await create({ EventSourceArn: QUEUE, Enabled: false })
  assert.deepEqual([State, (await get(UUID)).State], ['Disabled', 'Disabled'])
  assert.equal((await update(UUID, { Enabled: true })).State, 'Enabling')
  assert.equal((await get(UUID)).State, 'Enabled')
  assert.equal((await update(UUID, { BatchSize: 5, Enabled: true })).State, 'Updating')
  assert.equal((await update(UUID, { Enabled: false })).State, 'Disabling')
  const { BatchSize, State: last } = await get(UUID)
  assert.deepEqual([BatchSize, last], [5, 'Disabled'])
  assert.equal((await remove(UUID)).State, 'Deleting')
  for (const call of [get(UUID), remove(UUID), update(UUID, {})]) await refused(call, 'ResourceNotFoundException', 'The resource you requested does not exist.')
  await refused(get('short'), 'ValidationException', "1 validation error detected: Value 'short' at 'uUID' failed to satisfy constraint: Member must have length greater than or equal to 36")
})

test('an update replaces what it names, and empty forms take away', async () => {
  const settings = {
    ScalingConfig: { MaximumConcurrency: 3 }, FilterCriteria: { Filters: [{ Pattern: '{"body": ["x"]}' }] }, FunctionResponseTypes: ['ReportBatchItemFailures'],
  }
  await made({ EventSourceArn: QUEUE, BatchSize: 20, MaximumBatchingWindowInSeconds: 5, ...settings }, async ({ UUID }) => {
    const untouched = await update(UUID, { BatchSize: 21 })
    for (const name of Object.keys(settings)) assert.deepEqual(untouched[name], settings[name])
    await refused(update(UUID, { MaximumBatchingWindowInSeconds: 0 }), 'InvalidParameterValueException', 'Maximum batch window in seconds must be greater than 0 if maximum batch size is greater than 10')
    await refused(update(UUID, { ParallelizationFactor: 2 }), 'InvalidParameterValueException', unsupported('parallelizationFactor'))
    const emptied = await update(UUID, { ScalingConfig: {}, FilterCriteria: {}, FunctionResponseTypes: [], FunctionName: 'fn:1' })
    assert.deepEqual([emptied.ScalingConfig, emptied.FilterCriteria, emptied.FunctionResponseTypes, emptied.BatchSize], [undefined, undefined, [], 21])
    assert.equal((await get(UUID)).FunctionArn, arn('lambda', 'function:fn:1'))
  })
  await made({ EventSourceArn: KINESIS, StartingPosition: 'LATEST', DestinationConfig: { OnFailure: { Destination: arn('sns', 't') } } }, async ({ UUID }) => {
    assert.deepEqual((await update(UUID, { DestinationConfig: { OnFailure: { Destination: '' } } })).DestinationConfig, { OnFailure: {} })
  })
})

test('the same topic of a shared server is the same source', async () => {
  const cluster = (...servers) => ({ SelfManagedEventSource: { Endpoints: { KAFKA_BOOTSTRAP_SERVERS: servers } }, SourceAccessConfigurations: BASIC_AUTH })
  await made({ ...cluster('a:1', 'b:2'), Topics: ['one'] }, async ({ UUID }) => {
    await refused(create({ ...cluster('c:3', 'b:2'), Topics: ['one'] }), 'ResourceConflictException', `An event source mapping with event source ("c:3,b:2"), function ("${arn('lambda', 'function:fn')}"), topics ("one") already exists. Please update or delete the existing mapping with UUID ${UUID}`)
    await made({ ...cluster('b:2'), Topics: ['two'] })
    await made({ ...cluster('c:3'), Topics: ['one'] })
    await refused(update(UUID, { SelfManagedKafkaEventSourceConfig: { ConsumerGroupId: 'other' } }), 'InvalidParameterValueException', 'The consumer group ID of an event source mapping cannot be changed.')
  })
})

test('lists go by function and source, in pages', async () => {
  const queues = ['a', 'b', 'c', 'd', 'e'].map((name) => arn('sqs', name))
  const uuids = []
  for (const EventSourceArn of queues) uuids.push((await create({ EventSourceArn })).UUID)
  const aliased = (await create({ EventSourceArn: queues[0], FunctionName: 'fn:live' })).UUID
  const listed = async (parameters) => (await send(new ListEventSourceMappingsCommand(parameters))).EventSourceMappings.map(({ UUID }) => UUID).sort()
  assert.deepEqual(await listed({}), [...uuids, aliased].sort())
  assert.deepEqual(await listed({ FunctionName: 'fn' }), [...uuids].sort())
  assert.deepEqual(await listed({ FunctionName: 'fn:live' }), [aliased])
  assert.deepEqual(await listed({ EventSourceArn: queues[0] }), [uuids[0], aliased].sort())
  assert.deepEqual(await listed({ EventSourceArn: queues[0], FunctionName: arn('lambda', 'function:fn') }), [uuids[0]])
  assert.deepEqual(await listed({ FunctionName: 'unknown' }), [])
  const pages = []
  for await (const page of paginateListEventSourceMappings({ client: kiln.lambda, pageSize: 2 }, { FunctionName: 'fn' })) pages.push(page.EventSourceMappings.map(({ UUID }) => UUID))
  assert.deepEqual(pages.map(({ length }) => length), [2, 2, 1])
  assert.deepEqual(pages.flat().sort(), [...uuids].sort())
  for (const UUID of [...uuids, aliased]) await remove(UUID)
})

test('a mapping outlives its function and a crash of the daemon', async () => {
  await createFunction(kiln.lambda, { FunctionName: 'gone', Code: CODE })
  const parameters = { FunctionName: 'gone', EventSourceArn: KINESIS, StartingPosition: 'LATEST', BatchSize: 7, Enabled: false }
  const { UUID } = await create(parameters)
  await send(new DeleteFunctionCommand({ FunctionName: 'gone' }))
  const before = await get(UUID)
  await kiln.kill()
  kiln = await startKiln({ dataDir })
  assert.deepEqual(await get(UUID), before)
  assert.equal(before.BatchSize, 7)
  await remove(UUID)
  await kiln.kill()
  kiln = await startKiln({ dataDir })
  await refused(get(UUID), 'ResourceNotFoundException', 'The resource you requested does not exist.')
})
