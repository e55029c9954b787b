/** What NodePools say while the quota holds all of their flavors back (reports-2.md 10). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aPool, CleverStage, minutes } from './stage.test-support.ts'

test('RPB-28 NoCompatibleInstanceTypes says when all flavors are only held back by the quota', async (t) => {
  const stage = await CleverStage.open(t, {
    pool: aPool(['M', 'L']),
    cleverCloud: { settings: { quota: { cpu: 24, memoryGb: 24 } } },
  })
  const told = () => stage.messages('NoCompatibleInstanceTypes')
  stage.deploy('web', 1, { cpu: '1', memory: '1Gi' })
  assert.ok(await stage.until(() => told().length > 0, 5 * minutes))
  for (const message of told()) assert.match(message, /unavailable now \([LM].*quota.*next try at/)
})
