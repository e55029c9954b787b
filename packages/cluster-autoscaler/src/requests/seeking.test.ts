import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ProvisioningRequest } from '@tenon/api'
import { PodReader, Snapshot, VolumeIndex } from '@tenon/filters'
import { eventLoopTurns, silentLogger, VirtualClock } from '@tenon/runtime'
import { noGroups } from '../model.ts'
import { defaultOptions } from '../options/options.ts'
import { aPod, startMs } from '../testing/objects.test-support.ts'
import { KnownRequests } from './known-requests.ts'
import { RequestSeeking } from './seeking.ts'

test('GNG-50 a request of which it cannot be found out whether there is room says so', async () => {
  const clock = new VirtualClock(startMs)
  const known = new KnownRequests({
    cache: { requests: undefined },
    writer: {
      writeRequestConditions: async (request) => await Promise.resolve(request),
      deleteRequest: () => Promise.reject(new Error('nothing is deleted here')),
    },
    clock,
    logger: silentLogger,
  })
  const seeking = new RequestSeeking({
    options: defaultOptions.requests,
    known,
    scaleUp: { whole: () => Promise.reject(new TypeError('a bug')) },
    slicing: { clock, turns: eventLoopTurns, sliceMs: 8 },
  })
  const request: ProvisioningRequest = {
    apiVersion: 'autoscaling.x-k8s.io/v1',
    kind: 'ProvisioningRequest',
    metadata: { name: 'r', namespace: 'default', uid: 'u' },
    spec: { podSets: [{ podTemplateRef: { name: 'r' }, count: 1 }], provisioningClassName: 'any' },
  }
  const snapshot = new Snapshot({
    reader: new PodReader(),
    volumes: new VolumeIndex(),
    namespaces: new Map([['default', {}]]),
  })
  const view = {
    nowMs: startMs,
    nodes: [],
    index: noGroups,
    templates: new Map(),
    instances: new Map(),
    snapshot,
    quotas: [],
    lookups: {
      controllerOf: () => undefined,
      disruptionBudgets: [],
      daemonSets: [],
      deviceUse: new Map(),
    },
  }
  const { answer } = await seeking.one(
    { request, class: 'atomic', room: { kind: 'resolved', sets: [[aPod('p')]] } },
    { view, safetyOf: () => 'safe' },
    new AbortController().signal,
  )
  assert.deepEqual(answer, {
    type: 'Provisioned',
    status: 'False',
    reason: 'FailedToCheckCapacity',
    message: 'It could not be found out whether there is room; tried again later: a bug',
  })
})
