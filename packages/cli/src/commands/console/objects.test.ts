import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { kinds, type KubeObject } from '@tenon/api'
import type { ObjectReader, ObjectRef } from '@tenon/console'
import { onCluster } from '../../kubectl/connection.ts'
import { readersKubeconfig } from '../../testing/refusing.test-support.ts'
import { crdType, type ServedApi, serveApi } from '../../testing/served-api.test-support.ts'
import { snapshot } from '../../testing/snapshot.test-support.ts'
import { clusterObjects } from './objects.ts'

const signal = new AbortController().signal
const io = { env: {}, err: () => undefined }

async function anApi(t: TestContext): Promise<ServedApi> {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-objects-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  return await serveApi(t, folder, snapshot.objects)
}

async function readingOf(reader: ObjectReader, ref: ObjectRef): Promise<string> {
  const reading = await reader.read(ref, signal)
  return reading.kind === 'unread' ? reading.why : reading.kind
}

test('PGE-7 objects are read by kind; what is gone, not served, or no name is told apart, and asks for nothing else', async (t) => {
  const { kubeconfig, local, requests } = await anApi(t)
  const names = { kind: 'ExampleNodeClass', plural: 'examplenodeclasses', singular: 'examplenodeclass' }
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
  local.create(crdType, {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: crdType.kind,
    metadata: { name: 'examplenodeclasses.clouds.example' },
    spec: {
      group: 'clouds.example',
      scope: 'Cluster',
      names: { ...names, listKind: 'ExampleNodeClassList' },
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  } as never)
  const group = 'clouds.example'
  const type = { group, version: 'v1', kind: names.kind, plural: names.plural, namespaced: false }
  const object = { apiVersion: 'clouds.example/v1', kind: names.kind, metadata: { name: 'default' } }
  local.create<KubeObject>(type, object)
  await onCluster(io, { kubeconfig }, async (connection) => {
    const reader = clusterObjects(connection)
    const reading = (ref: ObjectRef) => readingOf(reader, ref)
    assert.equal(await reading({ kind: 'Node', name: 'n1' }), 'read')
    assert.equal(await reading({ kind: 'Pod', namespace: 'shop', name: 'a' }), 'read')
    assert.equal(await reading({ kind: names.kind, group, name: 'default' }), 'read')
    assert.equal(await reading({ kind: names.kind, group, name: 'other' }), 'gone')
    assert.equal(await reading({ kind: 'CronJob', namespace: 'shop', name: 'nobody' }), 'gone')
    for (const ref of [
      { kind: 'Secret', namespace: 'shop', name: 'a' },
      { kind: '__proto__', name: 'a' },
      { kind: 'Other', group, name: 'a' },
      { kind: 'Other', group: 'nobody.example', name: 'a' },
    ])
      assert.match(await reading(ref), /are not read|gone/)
    const before = requests.length
    for (const ref of [
      { kind: 'Pod', namespace: 'shop/secrets/x?', name: 'a' },
      { kind: 'Pod', namespace: '..', name: 'a' },
      { kind: 'Node', name: '../secrets' },
      { kind: 'K', group: 'v1/secrets?', name: 'a' },
      { kind: 'Node', name: 'a,involvedObject.kind=Secret' },
    ]) {
      assert.equal(await reading(ref), 'gone')
      assert.deepEqual(await reader.events(ref, undefined, signal), [])
    }
    assert.equal(requests.length, before)
  })
  assert.deepEqual(
    requests.filter((each) => each.includes('secrets') || !each.startsWith('GET ')),
    [],
  )
})

test('PGE-7 events are those of the object, newest first, and none of an earlier one of its name', async (t) => {
  const { kubeconfig, local } = await anApi(t)
  const event = (name: string, uid: string, lastTimestamp: string) =>
    local.create(kinds.event, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name, namespace: 'default' },
      involvedObject: { kind: 'Node', name: 'n1', uid },
      reason: name,
      lastTimestamp,
    } as never)
  event('old', 'uid-1', '2026-11-26T12:00:00Z')
  event('new', 'n1', '2026-11-26T12:01:00Z')
  event('former', 'uid-0', '2026-11-26T12:02:00Z')
  await onCluster(io, { kubeconfig }, async (connection) => {
    const reader = clusterObjects(connection)
    const events = await reader.events({ kind: 'Node', name: 'n1' }, 'uid-1', signal)
    assert.ok(!('absent' in events))
    assert.deepEqual(
      events.map(({ reason }) => reason),
      ['new', 'old'],
    )
  })
})

test('PGE-7 a missing right is told in the words of the server', async (t) => {
  const api = await anApi(t)
  const rule = { apiGroups: ['karpenter.sh'], resources: ['nodeclaims'], verbs: ['get'] }
  const kubeconfig = await readersKubeconfig(api, rule)
  await onCluster(io, { kubeconfig }, async (connection) => {
    const reader = clusterObjects(connection)
    assert.equal(await readingOf(reader, { kind: 'NodeClaim', name: 'web-1' }), 'read')
    const why = await readingOf(reader, { kind: 'Node', name: 'n1' })
    assert.match(why, /^the right is missing: nodes "n1" is forbidden: User "reader" cannot get/)
    const events = await reader.events({ kind: 'Node', name: 'n1' }, undefined, signal)
    assert.ok('absent' in events)
    assert.match(events.absent, /^events cannot be listed: events is forbidden/)
  })
})
