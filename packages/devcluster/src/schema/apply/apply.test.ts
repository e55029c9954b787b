import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StoredObject } from '../../contract.ts'
import { aDeployment, aPod, builtin } from '../fixtures.test-support.ts'
import { type ApplyResult, applyServerSide } from './server-side-apply.ts'
import { trackManagedFields } from './track-managed-fields.ts'

const definition = builtin('Deployment')

function created(spec: object = {}): StoredObject {
  const after = definition.applyDefaults(aDeployment(spec))
  return trackManagedFields({ before: undefined, after, manager: 'creator', definition, nowMs: 0 })
}

function applied(live: StoredObject | undefined, config: object, options: object = {}): ApplyResult {
  const base = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web', namespace: 'default' } }
  const input = {
    live,
    applied: { ...base, ...config },
    manager: 'me',
    force: false,
    definition,
    nowMs: 1000,
  }
  return applyServerSide({ ...input, ...options })
}

function objectOf(result: ApplyResult): StoredObject {
  assert.equal(result.kind, 'applied')
  return result.object
}

function owners(object: StoredObject): readonly unknown[] {
  return (object.metadata.managedFields ?? []).map((entry) => [
    entry.operation,
    entry.manager,
    entry.subresource,
  ])
}

function fieldsOfOwner(object: StoredObject, manager: string): unknown {
  return object.metadata.managedFields?.find((entry) => entry.manager === manager)?.fieldsV1
}

test('the creator owns every field it sent, down to keyed list items', () => {
  const pods = builtin('Pod')
  const after = pods.applyDefaults(aPod({}, { labels: { app: 'web' } }))
  const pod = trackManagedFields({ before: undefined, after, manager: 'm', definition: pods, nowMs: 0 })
  const fields = fieldsOfOwner(pod, 'm') as { 'f:metadata': unknown; 'f:spec': { 'f:containers': unknown } }
  assert.deepEqual(fields['f:metadata'], { 'f:labels': { '.': {}, 'f:app': {} } })
  assert.deepEqual(fields['f:spec']['f:containers'], {
    'k:{"name":"main"}': {
      '.': {},
      'f:image': {},
      'f:imagePullPolicy': {},
      'f:name': {},
      'f:resources': {},
      'f:terminationMessagePath': {},
      'f:terminationMessagePolicy': {},
    },
  })
  assert.equal('f:status' in fields, false, 'status belongs to its subresource')
})

test('who changes a field through a subresource owns it alone', () => {
  const live = created({ replicas: 2 })
  const after = { ...live, spec: { ...(live['spec'] as object), replicas: 5 } }
  const scaled = trackManagedFields({
    before: live,
    after,
    manager: 'hpa',
    definition,
    subresource: 'scale',
    nowMs: 5000,
  })
  assert.deepEqual(owners(scaled), [
    ['Update', 'creator', undefined],
    ['Update', 'hpa', 'scale'],
  ])
  assert.deepEqual(fieldsOfOwner(scaled, 'hpa'), { 'f:spec': { 'f:replicas': {} } })
  assert.equal('f:replicas' in (fieldsOfOwner(scaled, 'creator') as { 'f:spec': object })['f:spec'], false)
})

test('a write that changes nothing keeps the entries as they are', () => {
  const live = created()
  const copy = structuredClone(live)
  const after = trackManagedFields({ before: live, after: copy, manager: 'other', definition, nowMs: 9000 })
  assert.equal(after, copy)
})

test('a removed field leaves its owners, and owners without fields leave the list', () => {
  const live = created()
  const labelled = { ...live, metadata: { ...live.metadata, labels: { a: 'b' } } }
  const marked = trackManagedFields({
    before: live,
    after: labelled,
    manager: 'labeller',
    definition,
    nowMs: 1,
  })
  assert.equal(owners(marked).length, 2)
  const { labels: _labels, ...bare } = marked.metadata
  const unmarked = trackManagedFields({
    before: marked,
    after: { ...marked, metadata: bare },
    manager: 'creator',
    definition,
    nowMs: 2,
  })
  assert.deepEqual(owners(unmarked), [['Update', 'creator', undefined]])
})

test('an empty list of managed fields resets them', () => {
  const live = created()
  const after = { ...live, metadata: { ...live.metadata, managedFields: [] } }
  const reset = trackManagedFields({ before: live, after, manager: 'm', definition, nowMs: 1 })
  assert.equal(reset.metadata.managedFields, undefined)
})

test('applying another value to a field someone owns is a conflict', () => {
  const result = applied(created({ replicas: 2 }), { spec: { replicas: 3 } })
  assert.equal(result.kind, 'conflict')
  assert.deepEqual(
    result.conflicts.map(({ manager, field }) => [manager, field]),
    [['creator', '.spec.replicas']],
  )
})

test('applying the same value shares the field', () => {
  const object = objectOf(applied(created({ replicas: 2 }), { spec: { replicas: 2 } }))
  assert.deepEqual(owners(object), [
    ['Apply', 'me', undefined],
    ['Update', 'creator', undefined],
  ])
  assert.ok('f:replicas' in (fieldsOfOwner(object, 'creator') as { 'f:spec': object })['f:spec'])
})

test('force takes a field over', () => {
  const object = objectOf(applied(created({ replicas: 2 }), { spec: { replicas: 3 } }, { force: true }))
  assert.equal((object['spec'] as { replicas: number }).replicas, 3)
  assert.equal('f:replicas' in (fieldsOfOwner(object, 'creator') as { 'f:spec': object })['f:spec'], false)
})

test('what is no longer applied goes away unless someone else owns it', () => {
  const env = [{ name: 'A', value: '1' }]
  const spec = { replicas: 1, template: { spec: { containers: [{ name: 'main', env }] } } }
  const live = objectOf(applied(created({ replicas: 1 }), { spec }))
  const next = objectOf(applied(live, { spec: {} }))
  const result = next['spec'] as {
    replicas: number
    template: { spec: { containers: Record<string, unknown>[] } }
  }
  assert.equal(result.replicas, 1, 'still owned by its creator')
  assert.equal(result.template.spec.containers[0]?.['env'], undefined)
  assert.equal(result.template.spec.containers[0]?.['image'], 'nginx:1.27')
})

test('applying again changes nothing, times included', () => {
  const config = {
    spec: { template: { spec: { containers: [{ name: 'main', resources: { limits: { cpu: 0.5 } } }] } } },
  }
  const live = definition.applyDefaults(objectOf(applied(created(), config)))
  assert.equal(objectOf(applied(live, config, { nowMs: 99_000 })), live)
})

test('items known by the same keys, or without them, are refused', () => {
  const containers = [{ name: 'a' }, { name: 'a' }]
  const twice = applied(created(), { spec: { template: { spec: { containers } } } })
  assert.match(twice.kind === 'invalid' ? twice.message : '', /duplicate entries for key \[\{"name":"a"\}\]/)
  const nameless = applied(created(), { spec: { template: { spec: { containers: [{ image: 'x' }] } } } })
  assert.match(nameless.kind === 'invalid' ? nameless.message : '', /omits key field "name"/)
  const unknown = applied(created(), { spec: { nope: 1 } })
  assert.match(
    unknown.kind === 'invalid' ? unknown.message : '',
    /\.spec\.nope: field not declared in schema/,
  )
})

test('an object nobody tracked counts as written before the first apply', () => {
  const live = definition.applyDefaults(aDeployment({ replicas: 2 }))
  const result = applied(live, { spec: { replicas: 3 } })
  assert.deepEqual(result.kind === 'conflict' ? result.conflicts[0]?.manager : '', 'before-first-apply')
})
