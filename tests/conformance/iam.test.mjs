// IAM as tools use it on their way to a function: roles and policies are kept and found again. None of it is access control.
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, test } from 'node:test'
import * as iam from '@aws-sdk/client-iam'
import { startKiln, temporaryDirectory } from '../lib/kiln.mjs'

const TRUST = JSON.stringify({
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: { Service: 'lambda.amazonaws.com' }, Action: 'sts:AssumeRole' }],
})
const POLICY = JSON.stringify({ Version: '2012-10-17', Statement: { Effect: 'Allow', Action: 'logs:*', Resource: '*' } })
const BASIC = 'arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole'
const encoded = (document) => encodeURIComponent(document).replaceAll('*', '%2A')
const arn = (resource) => `arn:aws:iam::000000000000:${resource}`

let dataDir
let kiln

before(async () => {
  dataDir = temporaryDirectory()
  kiln = await startKiln({ dataDir })
})

after(async () => {
  await kiln?.stop()
  rmSync(dataDir, { recursive: true, force: true })
})

function client(accessKeyId = 'test') {
  const credentials = { accessKeyId, secretAccessKey: 'secret' }
  return new iam.IAMClient({ endpoint: kiln.endpoint, region: 'us-east-1', credentials, maxAttempts: 1 })
}

async function call(operation, parameters = {}, accessKeyId) {
  const { $metadata, ...answer } = await client(accessKeyId).send(new iam[`${operation}Command`](parameters))
  return answer
}

const refused = (promise, code, message, status) =>
  assert.rejects(promise, (error) => {
    assert.equal(error.message, message)
    assert.ok([code, `${code}Exception`].includes(error.name), error.name)
    assert.equal(error.$metadata.httpStatusCode, status)
    return true
  })

const createRole = (RoleName, parameters = {}) => call('CreateRole', { RoleName, AssumeRolePolicyDocument: TRUST, ...parameters })

test('a role is made, found, changed and deleted', async () => {
  const { Role: made } = await createRole('Worker', {
    Path: '/team/', Description: 'for <tests> & "more" é', MaxSessionDuration: 7200, Tags: [{ Key: 'k', Value: 'v' }],
  })
  assert.equal(made.Arn, arn('role/team/Worker'))
  assert.match(made.RoleId, /^AROA[A-Z2-7]{17}$/)
  assert.ok(Math.abs(made.CreateDate - new Date()) < 60_000)
  assert.equal(decodeURIComponent(made.AssumeRolePolicyDocument), TRUST)
  assert.deepEqual([made.Description, made.MaxSessionDuration, made.Tags], ['for <tests> & "more" é', 7200, [{ Key: 'k', Value: 'v' }]])
  assert.deepEqual((await call('GetRole', { RoleName: 'Worker' })).Role, made)
  const message = 'Role with name worker already exists.'
  await refused(createRole('worker'), 'EntityAlreadyExists', message, 409)

  await call('UpdateRole', { RoleName: 'Worker', Description: 'other', MaxSessionDuration: 3600 })
  const other = JSON.stringify({ Statement: [] })
  await call('UpdateAssumeRolePolicy', { RoleName: 'Worker', PolicyDocument: other })
  const { Role: changed } = await call('GetRole', { RoleName: 'Worker' })
  assert.deepEqual(changed, { ...made, Description: 'other', MaxSessionDuration: 3600, AssumeRolePolicyDocument: encoded(other) })
  assert.equal((await call('UpdateRoleDescription', { RoleName: 'Worker', Description: 'last' })).Role.Description, 'last')
  await call('DeleteRole', { RoleName: 'Worker' })
  for (const operation of ['GetRole', 'DeleteRole', 'UpdateRole', 'ListRoleTags', 'ListRolePolicies']) {
    await refused(call(operation, { RoleName: 'Worker' }), 'NoSuchEntity', 'The role with name Worker cannot be found.', 404)
  }
})

test('roles are those of the account, whatever the Region', async () => {
  await createRole('mine')
  await refused(call('GetRole', { RoleName: 'mine' }, '222222222222'), 'NoSuchEntity', 'The role with name mine cannot be found.', 404)
  await call('DeleteRole', { RoleName: 'mine' })
})

test('bad parameters are refused and change nothing', async () => {
  const one = (violation) => `1 validation error detected: ${violation}`
  const invalid = (parameters, message) => refused(call('CreateRole', { RoleName: 'bad', AssumeRolePolicyDocument: TRUST, ...parameters }), 'ValidationError', message, 400)
  const length = (value, name, than) => one(`Value '${value}' at '${name}' failed to satisfy constraint: Member must have length ${than}`)
  await invalid({ RoleName: 'r'.repeat(65) }, length('r'.repeat(65), 'roleName', 'less than or equal to 64'))
  await invalid({ RoleName: undefined }, one("Value null at 'roleName' failed to satisfy constraint: Member must not be null"))
  await invalid({ RoleName: 'a b' }, 'The specified value for roleName is invalid. It must contain only alphanumeric characters and/or the following: +=,.@_-')
  await invalid({ Path: 'team' }, 'The specified value for path is invalid. It must begin and end with / and contain only alphanumeric characters and/or / characters.')
  await invalid({ MaxSessionDuration: 3599 }, one("Value '3599' at 'maxSessionDuration' failed to satisfy constraint: Member must have value greater than or equal to 3600"))
  const malformed = (AssumeRolePolicyDocument, message) => refused(createRole('bad', { AssumeRolePolicyDocument }), 'MalformedPolicyDocument', message, 400)
  await malformed('{', 'This policy contains invalid Json')
  await malformed('{}', 'Syntax errors in policy.')
  const long = JSON.stringify({ Statement: [{ Sid: 'x'.repeat(2048) }] })
  await refused(createRole('bad', { AssumeRolePolicyDocument: long }), 'LimitExceeded', 'Cannot exceed quota for ACLSizePerRole: 2048', 409)
  const tags = Array.from({ length: 51 }, (_, i) => ({ Key: `k${i}`, Value: '' }))
  await refused(createRole('bad', { Tags: tags }), 'LimitExceeded', 'The number of tags has reached the maximum limit.', 409)
  await refused(call('GetRole', { RoleName: 'bad' }), 'NoSuchEntity', 'The role with name bad cannot be found.', 404)
  const raw = (body) => kiln.fetch('/', { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body })
  for (const name of ['%ff', 'a%00b']) {
    const answer = await raw(`Action=GetRole&Version=2010-05-08&RoleName=${name}`)
    assert.equal(answer.status, 400)
    assert.match(await answer.text(), /<Code>MalformedQueryString<\/Code>/)
  }
})

test('policies are put into a role and attached to it', async () => {
  await createRole('holder')
  const RoleName = 'holder'
  await call('PutRolePolicy', { RoleName, PolicyName: 'logs', PolicyDocument: POLICY })
  const shown = await call('GetRolePolicy', { RoleName, PolicyName: 'logs' })
  assert.deepEqual(shown, { RoleName, PolicyName: 'logs', PolicyDocument: encoded(POLICY) })
  await call('AttachRolePolicy', { RoleName, PolicyArn: BASIC })
  await call('AttachRolePolicy', { RoleName, PolicyArn: BASIC })
  assert.deepEqual((await call('ListAttachedRolePolicies', { RoleName })).AttachedPolicies, [{ PolicyName: 'AWSLambdaBasicExecutionRole', PolicyArn: BASIC }])
  assert.deepEqual((await call('ListAttachedRolePolicies', { RoleName, PathPrefix: '/other/' })).AttachedPolicies, [])
  assert.deepEqual((await call('ListRolePolicies', { RoleName })).PolicyNames, ['logs'])
  assert.deepEqual((await call('ListInstanceProfilesForRole', { RoleName })).InstanceProfiles, [])
  const missing = arn('policy/missing')
  await refused(call('AttachRolePolicy', { RoleName, PolicyArn: missing }), 'NoSuchEntity', `Policy ${missing} does not exist or is not attachable.`, 404)
  await refused(call('DetachRolePolicy', { RoleName, PolicyArn: missing }), 'NoSuchEntity', `Policy ${missing} was not found.`, 404)
  await refused(call('GetRolePolicy', { RoleName, PolicyName: 'none' }), 'NoSuchEntity', 'The role policy with name none cannot be found.', 404)

  await refused(call('DeleteRole', { RoleName }), 'DeleteConflict', 'Cannot delete entity, must detach all policies first.', 409)
  await call('DetachRolePolicy', { RoleName, PolicyArn: BASIC })
  await refused(call('DeleteRole', { RoleName }), 'DeleteConflict', 'Cannot delete entity, must delete policies first.', 409)
  await call('DeleteRolePolicy', { RoleName, PolicyName: 'logs' })
  await refused(call('DeleteRolePolicy', { RoleName, PolicyName: 'logs' }), 'NoSuchEntity', 'The role policy with name logs cannot be found.', 404)
  const other = (i) => `arn:aws:iam::aws:policy/P${i}`
  for (let i = 0; i < 10; i++) await call('AttachRolePolicy', { RoleName, PolicyArn: other(i) })
  await refused(call('AttachRolePolicy', { RoleName, PolicyArn: other(10) }), 'LimitExceeded', 'Cannot exceed quota for PoliciesPerRole: 10', 409)
  for (let i = 0; i < 10; i++) await call('DetachRolePolicy', { RoleName, PolicyArn: other(i) })
  await call('DeleteRole', { RoleName })
})

test('tags are added, replaced and removed', async () => {
  const RoleName = 'tagged'
  await createRole(RoleName, { Tags: [{ Key: 'a', Value: '1' }] })
  await call('TagRole', { RoleName, Tags: [{ Key: 'a', Value: '2' }, { Key: 'b', Value: '' }] })
  assert.deepEqual((await call('ListRoleTags', { RoleName })).Tags, [{ Key: 'a', Value: '2' }, { Key: 'b', Value: '' }])
  await call('UntagRole', { RoleName, TagKeys: ['a', 'none'] })
  assert.deepEqual((await call('GetRole', { RoleName })).Role.Tags, [{ Key: 'b', Value: '' }])
  await call('DeleteRole', { RoleName })
})

test('a policy of the account has versions, and is not deleted while it is attached', async () => {
  const PolicyArn = arn('policy/app/Logs')
  const { Policy } = await call('CreatePolicy', { PolicyName: 'Logs', Path: '/app/', PolicyDocument: POLICY, Description: 'd' })
  assert.equal(Policy.Arn, PolicyArn)
  assert.deepEqual((await call('GetPolicy', { PolicyArn })).Policy, Policy)
  await refused(call('CreatePolicy', { PolicyName: 'Logs', PolicyDocument: POLICY }), 'EntityAlreadyExists', 'A policy called Logs already exists. Duplicate names are not allowed.', 409)

  const other = JSON.stringify({ Statement: [] })
  const { PolicyVersion } = await call('CreatePolicyVersion', { PolicyArn, PolicyDocument: other, SetAsDefault: true })
  assert.deepEqual([PolicyVersion.VersionId, PolicyVersion.IsDefaultVersion], ['v2', true])
  const { PolicyVersion: first } = await call('GetPolicyVersion', { PolicyArn, VersionId: 'v1' })
  assert.deepEqual([decodeURIComponent(first.Document), first.IsDefaultVersion], [POLICY, false])
  const ids = async () => (await call('ListPolicyVersions', { PolicyArn })).Versions.map(({ VersionId }) => VersionId)
  assert.deepEqual(await ids(), ['v1', 'v2'])
  await refused(call('DeletePolicyVersion', { PolicyArn, VersionId: 'v2' }), 'DeleteConflict', 'Cannot delete the default version of a policy.', 409)
  await call('SetDefaultPolicyVersion', { PolicyArn, VersionId: 'v1' })
  await call('DeletePolicyVersion', { PolicyArn, VersionId: 'v2' })
  assert.deepEqual(await ids(), ['v1'])
  assert.equal((await call('CreatePolicyVersion', { PolicyArn, PolicyDocument: other })).PolicyVersion.VersionId, 'v3')

  await createRole('user')
  await call('AttachRolePolicy', { RoleName: 'user', PolicyArn })
  assert.equal((await call('GetPolicy', { PolicyArn })).Policy.AttachmentCount, 1)
  assert.deepEqual((await call('ListPolicies', { OnlyAttached: true })).Policies.map(({ PolicyName }) => PolicyName), ['Logs'])
  await refused(call('DeletePolicy', { PolicyArn }), 'DeleteConflict', 'Cannot delete a policy attached to entities.', 409)
  await call('DetachRolePolicy', { RoleName: 'user', PolicyArn })
  await call('DeletePolicyVersion', { PolicyArn, VersionId: 'v3' })
  await call('DeletePolicy', { PolicyArn })
  await refused(call('GetPolicy', { PolicyArn }), 'NoSuchEntity', `Policy ${PolicyArn} was not found.`, 404)
  await refused(call('GetPolicy', { PolicyArn: BASIC }), 'NoSuchEntity', `Policy ${BASIC} was not found.`, 404)
  await call('DeleteRole', { RoleName: 'user' })
})

test('lists come in pages, by name', async () => {
  const names = ['e', 'c', 'a', 'd', 'b']
  await Promise.all(names.map((name) => createRole(name, { Path: name < 'c' ? '/first/' : '/' })))
  const pages = []
  for await (const page of iam.paginateListRoles({ client: client(), pageSize: 2 }, {})) pages.push(page.Roles.map(({ RoleName }) => RoleName))
  assert.deepEqual(pages, [['a', 'b'], ['c', 'd'], ['e']])
  assert.deepEqual((await call('ListRoles', { PathPrefix: '/first/' })).Roles.map(({ RoleName }) => RoleName), ['a', 'b'])
  await refused(call('ListRoles', { MaxItems: 1001 }), 'ValidationError', "1 validation error detected: Value '1001' at 'maxItems' failed to satisfy constraint: Member must have value less than or equal to 1000", 400)
  for (const RoleName of names) await call('DeleteRole', { RoleName })
})

test('of two that make the same role, one does', async () => {
  const outcomes = await Promise.allSettled(Array.from({ length: 4 }, () => createRole('raced')))
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
  await call('DeleteRole', { RoleName: 'raced' })
})

test('roles and policies outlive a crash of the daemon', async () => {
  await createRole('kept', { Tags: [{ Key: 'k', Value: 'v' }] })
  await call('PutRolePolicy', { RoleName: 'kept', PolicyName: 'p', PolicyDocument: POLICY })
  await call('CreatePolicy', { PolicyName: 'kept', PolicyDocument: POLICY })
  const role = await call('GetRole', { RoleName: 'kept' })
  await kiln.kill()
  kiln = await startKiln({ dataDir })
  assert.deepEqual(await call('GetRole', { RoleName: 'kept' }), role)
  assert.deepEqual((await call('ListRolePolicies', { RoleName: 'kept' })).PolicyNames, ['p'])
  assert.equal((await call('GetPolicy', { PolicyArn: arn('policy/kept') })).Policy.PolicyName, 'kept')
})

test('what Kiln does not have of IAM is named', async () => {
  await refused(call('CreateUser', { UserName: 'u' }), 'NotImplementedException', 'Kiln does not support the action CreateUser of AWS IAM.', 501)
})
