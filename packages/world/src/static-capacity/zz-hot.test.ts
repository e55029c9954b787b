import { test } from 'node:test'
import { ProviderError } from '/work/main/packages/provider/src/index.ts'
import { openStatic } from '/work/main/packages/world/src/static-capacity/static-stage.test-support.ts'
test('hot', async (t) => {
  const stage = await openStatic(t, 2, { idle: true })
  stage.cloud.onCreate = () => { throw new ProviderError('insufficientCapacity', 'none') }
  await stage.start()
  const before = stage.cloud.count('create')
  await stage.pass(60_000)
  console.log('creates', before, stage.cloud.count('create'))
})
