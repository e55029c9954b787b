import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type InstanceType, labels } from '@tenon/api'
import {
  anExpression,
  anOffering,
  aPod,
  aPool,
  aPoolInput,
  aType,
  soldAs,
} from '../testing/builders.test-support.ts'
import { consolidate, type Story } from './consolidation.test-support.ts'

const why = { because: 'the quota of instances is used up', untilMs: 1_800_000_000_000 }
const large = aType('large', 8, 32)
const short = (type: InstanceType, capacityType = 'on-demand', pricePerHour?: number): InstanceType => {
  const [{ pricePerHour: usual } = { pricePerHour: undefined }] = type.offerings
  const offer = anOffering(capacityType, pricePerHour ?? usual, 'zone-1', {
    available: false,
    unavailability: why,
  })
  return soldAs(type, offer)
}
const small = aType('small', 2, 8)
const medium = aType('medium', 4, 16)

/** What is said to be short for the node `big`, by name of the type. */
function told(story: Partial<Story>, search: 'single' | 'survey' | 'global' = 'single') {
  const instances = { big: { type: large, pods: [aPod({ cpu: '1' })] } }
  const { findings } = consolidate(search, { instances, ...story })
  return findings.flatMap((finding) => {
    if (finding.kind !== 'refused') return []
    const { kind, short: offerings } = { short: [], ...finding.refusal }
    return [[kind, ...offerings.map(({ instanceType }) => instanceType).toSorted()]]
  })
}

describe('a node that a cheaper one would replace, were it available', () => {
  test('is told of all cheaper offerings that hold its pods, with their reason', () => {
    const instances = { big: { type: large, pods: [aPod({ cpu: '1' })] } }
    const types = [short(small), short(medium), large]
    const [finding] = consolidate('single', { instances, types }).findings
    assert.ok(finding?.kind === 'refused' && finding.refusal.kind === 'noCheaper')
    const offering = { zone: 'zone-1', capacityType: 'on-demand', unavailability: why }
    assert.deepEqual(finding.refusal.short, [
      { instanceType: 'small', ...offering },
      { instanceType: 'medium', ...offering },
    ])
    for (const search of ['survey', 'global'] as const)
      assert.deepEqual(told({ types }, search), [['noCheaper', 'medium', 'small']])
  })

  test('is not told of what is too small, as dear, or of unknown price', () => {
    const tiny = short(aType('tiny', 0.5, 2))
    const dear = short(aType('dear', 4, 16), 'on-demand', 10)
    const unpriced = soldAs(aType('unpriced', 4, 16), {
      ...anOffering('on-demand', undefined),
      available: false,
    })
    assert.deepEqual(told({ types: [tiny, dear, unpriced, large] }), [['noCheaper']])
  })

  test('is not told of what its pods, its NodePool or the limits of the NodePool exclude', () => {
    const onlySpot = aPool(
      'default',
      {},
      { requirements: [anExpression(labels.capacityType, 'In', 'on-demand')] },
    )
    const types = [short(small, 'spot', 0.01), large]
    assert.deepEqual(told({ pools: [aPoolInput(onlySpot, types)] }), [['noCheaper']])
    const pods = [aPod({ cpu: '1' }, { nodeSelector: { [labels.instanceType]: 'large' } })]
    const instances = { big: { type: large, pods } }
    assert.deepEqual(told({ instances, types: [short(small), large] }), [['noCheaper']])
  })

  test('is told of what another NodePool would sell', () => {
    const other = aPool('other')
    const pools = [aPoolInput(aPool(), [large]), aPoolInput(other, [short(small)])]
    assert.deepEqual(told({ pools }), [['noCheaper', 'small']])
    const tainted = aPool('other', {}, { taints: [{ key: 'a', effect: 'NoSchedule' }] })
    const closed = [aPoolInput(aPool(), [large]), aPoolInput(tainted, [short(small)])]
    assert.deepEqual(told({ pools: closed }), [['noCheaper']])
  })

  test('is told so when it would take several nodes only because single ones are short', () => {
    const instances = { big: { type: large, pods: [aPod({ cpu: '1500m' }), aPod({ cpu: '1500m' })] } }
    const cheap = soldAs(small, anOffering('on-demand', 0.01))
    const types = [cheap, short(medium)]
    assert.deepEqual(told({ instances, types }), [['severalNodes', 'medium']])
    const usual = anOffering('on-demand', 0.001)
    assert.deepEqual(told({ instances, types: [soldAs(small, usual)] }), [['severalNodes']])
  })
})
