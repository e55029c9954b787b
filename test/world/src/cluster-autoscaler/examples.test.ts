/** What examples/cluster-autoscaler has beside the manifests that are started elsewhere. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { exampleManifests } from './process-stage.test-support.ts'

const run = promisify(execFile)
const root = resolve(import.meta.dirname, '../../../..')
const folder = resolve(root, 'examples/cluster-autoscaler')
const sheet = readFileSync(resolve(root, 'docs/behaviour/cluster-autoscaler.md'), 'utf8')

test('CAS-105 the two manifests differ in where they run, and in nothing else', () => {
  const [regular, controlPlane] = ['regular.yaml', 'control-plane.yaml'].map((file) => exampleManifests(file))
  const key = 'node-role.kubernetes.io/control-plane'
  const placed = (regular ?? []).map((each) => {
    const template = each.spec?.template
    if (template === undefined) return each
    const scheduling = { nodeSelector: { [key]: '' }, tolerations: [{ key, effect: 'NoSchedule' }] }
    const spec = { ...template.spec, ...scheduling }
    return { ...each, spec: { ...each.spec, template: { ...template, spec } } }
  })
  assert.deepEqual(controlPlane, placed)
  const deployment = JSON.stringify(regular?.find(({ kind }) => kind === 'Deployment'))
  for (const text of ['"exoscale-api-credentials"', '"prometheus.io/port":"8085"', '"/cluster-autoscaler"'])
    assert.ok(deployment.includes(text), text)
})

test('CAS-21 the roles allow what the sheet documents, and nothing else', () => {
  const lists = /Documented minimal IAM set, SKS: `([^`]+)`\. Unmanaged cluster: `([^`]+)`/
    .exec(sheet)
    ?.slice(1)
  for (const [at, file] of ['sks.json', 'instance-pools.json'].entries()) {
    const policy = JSON.parse(readFileSync(resolve(folder, 'iam', file), 'utf8')) as {
      readonly services: { readonly compute: { readonly rules: readonly { readonly expression: string }[] } }
    }
    const [rule] = policy.services.compute.rules
    const allowed = /^operation in \[(.*)\]$/
      .exec(rule?.expression ?? '')?.[1]
      ?.replaceAll("'", '')
      .split(', ')
    assert.deepEqual(allowed, lists?.[at]?.split(' '))
  }
})

test('the script prints the Secret with the values as they are, and asks for the first that is missing', async () => {
  const credentials = {
    EXOSCALE_API_KEY: 'EXOkey',
    EXOSCALE_API_SECRET: 's%e$c"ret\\n',
    EXOSCALE_ZONE: 'ch-gva-2',
  }
  const script = resolve(folder, 'secret.sh')
  const environment = { PATH: process.env['PATH'] ?? '' }
  const { stdout } = await run('sh', [script], { env: { ...environment, ...credentials } })
  const secret = parse(stdout) as {
    readonly metadata: object
    readonly type: string
    readonly data: Readonly<Record<string, string>>
  }
  assert.deepEqual(secret.metadata, { name: 'exoscale-api-credentials', namespace: 'kube-system' })
  assert.equal(secret.type, 'Opaque')
  const decoded = Object.entries(secret.data).map(([key, value]) => [
    key,
    Buffer.from(value, 'base64').toString(),
  ])
  assert.deepEqual(Object.fromEntries(decoded), {
    'api-key': credentials.EXOSCALE_API_KEY,
    'api-secret': credentials.EXOSCALE_API_SECRET,
    'api-zone': credentials.EXOSCALE_ZONE,
  })
  await assert.rejects(run('sh', [script], { env: { ...environment, EXOSCALE_API_KEY: 'k' } }), {
    stderr: 'set EXOSCALE_API_SECRET\n',
  })
})
