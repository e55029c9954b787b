/** Words for stories about pools that keep a number of nodes. */
import type { TestContext } from 'node:test'
import { karpenterKinds, type NodeClaim, type NodePool } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { seconds, Stage } from '../testing/stage.test-support.ts'
import { aType, madeClaims } from '../testing/pools.test-support.ts'

type StageOptions = NonNullable<Parameters<typeof Stage.open>[1]>

export const isOn = { featureGates: { ...defaultSettings.featureGates, staticCapacity: true } }

/** A stage whose pool `default` keeps so many nodes, of the type that the cloud makes. */
export async function openStatic(
  t: TestContext,
  replicas: number,
  { pool, ...options }: StageOptions = {},
): Promise<Stage> {
  const { idle = false, ...others } = options
  const stage = await Stage.open(t, { settings: isOn, pool: { replicas, ...pool }, ...others, idle: true })
  stage.cloud.instanceTypes = [aType('medium', 4)]
  if (!idle) await stage.start()
  return stage
}

/** Claims that were made for the pool and are not on their way out. */
export function staying(stage: Stage): readonly NodeClaim[] {
  return madeClaims(stage).filter(({ metadata }) => metadata.deletionTimestamp === undefined)
}

export function stayingNames(stage: Stage): readonly string[] {
  return staying(stage)
    .map(({ metadata }) => metadata.name)
    .toSorted()
}

/** Changes the pool and lets a moment pass. */
export async function resize(
  stage: Stage,
  replicas: number,
  limits?: NodePool['spec']['limits'],
): Promise<void> {
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { replicas, ...(limits && { limits }) } })
  await stage.pass(seconds)
}

/** Makes every claim an initialized node named `node-CLAIM`, in order of name. */
export async function joinAll(stage: Stage): Promise<readonly string[]> {
  const names = stayingNames(stage)
  for (const name of names) {
    if (stage.nodeNow(`node-${name}`) !== undefined) continue
    await stage.join(name)
    await stage.report(`node-${name}`)
  }
  return names
}

/** The node class of the pool reports whether it is ready, and with it the pool. */
export async function reportReady(stage: Stage, status: 'True' | 'False'): Promise<void> {
  const condition = {
    type: 'Ready',
    status,
    reason: 'Told',
    message: '',
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }
  stage.patch(kwokNodeClassKind, 'default', { status: { conditions: [condition] } }, 'status')
  await stage.pass(seconds)
}
