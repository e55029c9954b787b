import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import { createCredentials } from '@tenon/devcluster'
import { VirtualClock } from '@tenon/runtime'
import { minutes, Stand } from './stand.test-support.ts'

test('tokens of instances that were never made end, whichever process made them', async () => {
  const stand = await Stand.open('exoscale', await createCredentials(new VirtualClock().now()))
  const { operator, world } = stand
  let isAsking = false
  operator.process.countFromHere()
  operator.process.onWrite = ({ method, path }) => {
    if (method !== 'POST' || !path.endsWith('/instance')) return
    isAsking = true
    operator.process.crash()
  }
  const tokens = () =>
    world.cluster.server.local
      .list(kinds.secret)
      .filter(({ metadata }) => metadata.name.startsWith('bootstrap-token-'))
  stand.createClaim('a')
  await stand.until(() => isAsking)
  assert.equal(tokens().length, 1)
  await world.bury(operator)
  await stand.start()
  await stand.until(() => stand.holds('a', 'Initialized'))
  await stand.until(() => tokens().length === 0, 30 * minutes)
  assert.equal(world.instancesByClaim().size, 1)
  await stand.close()
})
