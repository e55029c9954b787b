import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { silentLogger, VirtualClock } from '@tenon/runtime'
import { defaultSettings, type Settings } from '../settings.ts'
import { PlacementGate } from './gate.ts'

async function aGate(
  serverVersion: () => Promise<string>,
  plannedPlacement: boolean | 'auto' = 'auto',
  compatibility: Settings['compatibility'] = 'none',
  clock = new VirtualClock(),
): Promise<PlacementGate> {
  const settings = {
    featureGates: { ...defaultSettings.featureGates, plannedPlacement },
    compatibility,
    maxNominations: 10,
  }
  const gate = new PlacementGate({ serverVersion }, settings, clock, silentLogger)
  assert.equal(gate.isOn, false)
  await gate.settled()
  return gate
}

const version = (text: string) => () => Promise.resolve(text)
const unknown = () => Promise.reject(new Error('unreachable'))

describe('the gate PlannedPlacement', () => {
  test('follows the version of the server unless it is set', async () => {
    assert.equal((await aGate(version('v1.34.9'))).isOn, false)
    assert.equal((await aGate(version('v1.35.0'))).isOn, true)
    assert.equal((await aGate(unknown)).isOn, false)
    assert.equal((await aGate(unknown, true)).isOn, true)
    assert.equal((await aGate(version('v1.36.3'), false)).isOn, false)
  })

  test('is neither on nor off until it is known', async () => {
    const server = version('v1.36.3')
    const settings = {
      featureGates: { ...defaultSettings.featureGates, plannedPlacement: 'auto' },
      compatibility: 'none',
      maxNominations: 10,
    } as const
    const clock = new VirtualClock()
    const gate = new PlacementGate({ serverVersion: server }, settings, clock, silentLogger)
    assert.deepEqual([gate.isOn, gate.isOff], [false, false])
    await gate.settled()
    assert.deepEqual([gate.isOn, gate.isOff], [true, false])
    gate.refuse(new Error('forbidden'))
    assert.deepEqual([gate.isOn, gate.isOff], [false, true])
    assert.equal((await aGate(server, false)).isOff, true)
  })

  test('VER-3 follows a control plane that is upgraded, and one that is set back, within a minute', async () => {
    const clock = new VirtualClock()
    let server: () => Promise<string> = version('v1.34.4')
    const gate = await aGate(() => server(), 'auto', 'none', clock)
    const states: boolean[] = [gate.isOn]
    assert.equal(gate.minor, 34)
    for (const next of [version('v1.35.0'), unknown, version('v1.34.4')]) {
      server = next
      await clock.advance(60_000)
      await gate.settled()
      await clock.advance(0)
      states.push(gate.isOn)
    }
    assert.deepEqual(states, [false, true, true, false])
    server = version('v1.37.0')
    await clock.advance(60_000)
    await gate.settled()
    await clock.advance(0)
    assert.equal(gate.minor, 37)
  })

  test('counts as off while the server refuses, and plans have to hold anywhere then', async () => {
    const clock = new VirtualClock()
    const gate = await aGate(version('v1.36.3'), 'auto', 'none', clock)
    assert.deepEqual(gate.improvementFor(1), { improvement: 'planned' })
    gate.refuse(new Error('forbidden'))
    assert.equal(gate.isOn, false)
    assert.deepEqual(gate.improvementFor(1), { improvement: 'free' })
    // RPT section 1: what is refused once is not refused for ever.
    await clock.advance(10 * 60_000)
    assert.equal(gate.isOn, true)
  })

  test('RPT section 1: a server that does not tell its version is asked again after a minute', async () => {
    const clock = new VirtualClock()
    let asked = 0
    const late = () => (asked++ === 0 ? unknown() : version('v1.36.3')())
    const gate = await aGate(late, 'auto', 'none', clock)
    assert.deepEqual([gate.isOn, gate.isOff], [false, true])
    await gate.settled()
    assert.equal(asked, 1)
    await clock.advance(60_000)
    await gate.settled()
    await clock.advance(0)
    assert.deepEqual([gate.isOn, asked], [true, 2])
  })

  test('more pods than can be nominated have to fit anywhere', async () => {
    const gate = await aGate(version('v1.36.3'))
    assert.deepEqual(gate.improvementFor(10), { improvement: 'planned' })
    assert.deepEqual(gate.improvementFor(11), { improvement: 'free' })
  })

  test('compatibility with Karpenter closes it and leaves plans as first fit makes them', async () => {
    const gate = await aGate(version('v1.36.3'), true, 'karpenter')
    assert.deepEqual([gate.isOn, gate.keepsPlans, gate.improvementFor(1)], [false, false, {}])
  })
})
