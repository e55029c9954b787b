import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type DeploymentParts,
  aDeployment,
  aParticipant,
  names,
  readingOf,
} from '../testing/deployments.test-support.ts'

const reasonOf = (parts: DeploymentParts) => aParticipant(parts).unavailability?.because

test('CAP-20 it can grow below its maximum size, and with no replicas set', () => {
  const at = (replicas: number | undefined) =>
    reasonOf({
      annotations: { [names.maxSize]: '10' },
      spec: replicas === undefined ? {} : { replicas },
    })
  assert.equal(at(3), undefined)
  assert.equal(at(undefined), undefined)
  assert.equal(
    at(10),
    'MachineDeployment default/md-0 has 10 of at most 10 replicas (annotation cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size)',
  )
  assert.match(at(12) ?? '', /has 12 of at most 10 replicas/)
  assert.equal(aParticipant({ annotations: { [names.maxSize]: '10' } }).maxReplicas, 10)
})

test('CAP-21 a maximum that is not an integer, or none at all, bounds nothing; with 0 it cannot grow', () => {
  const odd = aParticipant({ annotations: { [names.maxSize]: 'not-a-number' }, spec: { replicas: 99 } })
  assert.equal(odd.unavailability, undefined)
  assert.equal(odd.maxReplicas, undefined)
  assert.match(odd.warnings.join(), /max-size is not an integer and is ignored; use an integer such as 10/)
  assert.equal(reasonOf({ spec: { replicas: 99 } }), undefined)
  assert.match(reasonOf({ annotations: { [names.maxSize]: '0' } }) ?? '', /has 0 of at most 0 replicas/)
  assert.match(reasonOf({ annotations: { [names.maxSize]: '-1' } }) ?? '', /has 0 of at most 0 replicas/)
})

test('CAP-84 a paused MachineDeployment cannot grow, nor one that is being deleted', () => {
  assert.equal(
    reasonOf({ spec: { paused: true } }),
    'MachineDeployment default/md-0: it is paused by spec.paused',
  )
  assert.equal(
    reasonOf({ annotations: { [names.paused]: '' } }),
    'MachineDeployment default/md-0: it is paused by annotation cluster.x-k8s.io/paused',
  )
  const deployment = aDeployment()
  const metadata = { ...deployment.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' }
  const reading = readingOf({ ...deployment, metadata })
  assert.ok(reading.kind === 'participant')
  assert.match(reading.participant.unavailability?.because ?? '', /is being deleted/)
})
