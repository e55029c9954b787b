import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kwok } from '@tenon/provider-kwok/module'
import type { InstanceType } from '@tenon/api'
import { exoscale } from '@tenon/provider-exoscale/module'
import { withNeighbours } from './neighbours.ts'

const noFiles = () => Promise.reject(new Error('no file is named'))

async function exoscaleTypes(): Promise<readonly InstanceType[]> {
  const catalogue = await exoscale.offline({ EXOSCALE_ZONE: 'ch-gva-2' }, noFiles)
  return catalogue.typesOf(undefined).offered
}

test('EXP-25 the next types are those of the same family, and of GPUs those with GPUs', async () => {
  const types = await exoscaleTypes()
  assert.deepEqual(withNeighbours('standard.large', types), [
    'standard.medium',
    'standard.large',
    'standard.extra-large',
  ])
  const gpus = withNeighbours('gpua30.small', types)
  assert.ok(gpus.includes('gpua30.small'), gpus.join(' '))
  for (const name of gpus) assert.match(name, /^gpu/)
})

test('EXP-25 the smallest type has no smaller one, and one that is not known stands alone', async () => {
  const types = await exoscaleTypes()
  const [first, second] = withNeighbours('standard.micro', types)
  assert.deepEqual([first, second], ['standard.micro', 'standard.tiny'])
  assert.deepEqual(withNeighbours('standard.unheard-of', types), ['standard.unheard-of'])
})

test('EXP-25 architecture and operating system stay the same', async () => {
  const catalogue = await kwok.offline({}, noFiles)
  const types = catalogue.typesOf(undefined).offered
  const arm = types.find(({ name }) => name.includes('arm64') && name.includes('linux'))
  assert.ok(arm)
  for (const name of withNeighbours(arm.name, types)) assert.match(name, /arm64-linux/)
})
