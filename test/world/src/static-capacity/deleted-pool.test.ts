import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds } from '@tenon/api'
import { LoggedErrors } from '../disruption/disruption-stage.test-support.ts'
import { minutes, intercepting, type Stage } from '../testing/stage.test-support.ts'
import { joinAll, openStatic } from './static-stage.test-support.ts'

test('a static NodePool that is deleted while its drifted nodes are replaced is no error', async (t) => {
  const logger = new LoggedErrors()
  let staged: Stage | undefined
  let isDeleted = false
  const apiPath = intercepting((method, path, body) => {
    const isMark = method === 'PATCH' && path.includes('/nodes/') && body.includes('karpenter.sh/disrupted')
    if (isMark && !isDeleted && staged !== undefined) {
      isDeleted = true
      staged.delete(karpenterKinds.nodePool, 'default')
    }
    return 'pass'
  })
  const stage = await openStatic(t, 2, { logger, apiPath })
  await joinAll(stage)
  staged = stage
  stage.cloud.onIsDrifted = () => 'ImageChanged'
  await stage.pass(10 * minutes)
  assert.equal(isDeleted, true)
  assert.deepEqual(
    logger.lines.map(({ message }) => message),
    [],
  )
})
