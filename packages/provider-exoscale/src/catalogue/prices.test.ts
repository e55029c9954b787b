import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { readExoscaleOptions } from '../options.ts'
import { clusterId } from '../testing/fake-cloud.test-support.ts'
import { aPool, aNodeClass, aWorld } from '../testing/world.test-support.ts'
import { exoscaleNodeClassKind } from '../nodeclass/types.ts'
import { parsePriceFile, pricesByType } from './prices.ts'

const required = {
  EXOSCALE_ZONE: 'ch-gva-2',
  EXOSCALE_SKS_CLUSTER_ID: clusterId,
  EXOSCALE_API_KEY: 'EXOtest',
  EXOSCALE_API_SECRET: 'x',
}

describe('prices', () => {
  it('EXO-42 the longest size wins in price keys', () => {
    const prices = pricesByType('EUR')
    assert.equal(prices.get('standard.extra-large'), 0.186_67)
    assert.equal(prices.get('standard.large'), 0.093_33)
    assert.equal(prices.get('storage.jumbo'), 1.866_67)
    assert.equal(prices.get('gpua30.small'), 1.168_06)
    assert.equal(prices.get('gpu3080ti.large'), 3.140_28)
    assert.equal(prices.size, 42)
  })

  it('EXO-44 another list in another currency leaves the prices in EUR as they are', () => {
    const file = parsePriceFile('{"chf":{"running_medium":"0.09"},"usd":{"standard.medium":0.08}}')
    const medium = (currency: 'EUR' | 'CHF' | 'USD') => pricesByType(currency, file).get('standard.medium')
    assert.deepEqual([medium('EUR'), medium('CHF'), medium('USD')], [0.046_66, 0.09, 0.08])
    assert.equal(pricesByType('CHF', file).get('standard.large'), 0.093_33, 'what the file leaves out stays')
    const read = readExoscaleOptions(required)
    assert.ok('ok' in read && read.ok.currency === 'EUR')
  })

  it('keys of the public list are read in its own sense, and what is not an instance is left out', () => {
    const list = {
      running_gpu_small: '0.9',
      running_gpua30_small: '1.22645833',
      running_gpua5000_small: 1.4,
      running_cpu_titan48c: 2.1,
      volume: '0.00014000',
      traffic_free: '0E-8',
    }
    const prices = pricesByType('EUR', parsePriceFile(JSON.stringify({ eur: list })))
    const names = ['gpu.small', 'gpua30.small', 'gpua5000.small', 'cpu.titan48c']
    assert.deepEqual(
      names.map((name) => prices.get(name)),
      [0.9, 1.226_458_33, 1.4, 2.1],
    )
  })

  it('a file that cannot be used says where and how to fix it', () => {
    const wrong: readonly [string, RegExp][] = [
      ['prices', /not JSON/],
      ['[]', /EUR, CHF or USD/],
      ['{"GBP":{}}', /"GBP" is not one of EUR, CHF, USD/],
      ['{"EUR":3}', /EUR must be an object/],
      ['{"EUR":{"running_medium":"cheap"}}', /EUR\.running_medium is "cheap"; give a price per hour/],
      ['{"EUR":{"standard.medium":-1}}', /EUR\.standard\.medium is -1/],
    ]
    for (const [text, said] of wrong) assert.throws(() => parsePriceFile(text), { message: said })
  })

  it('an unknown currency stops the start and names the known ones', () => {
    const read = readExoscaleOptions({ ...required, EXOSCALE_CURRENCY: 'gbp' })
    assert.ok('error' in read)
    assert.match(read.error, /EXOSCALE_CURRENCY is "GBP".*EUR, CHF, USD/)
  })

  it('a price file changes what types cost, in its currency', async () => {
    const world = aWorld({ EXOSCALE_CURRENCY: 'CHF' }, undefined, { CHF: { 'standard.small': 9 } })
    world.kube.put(exoscaleNodeClassKind, aNodeClass())
    const types = await world.settle(world.provider.getInstanceTypes(aPool()))
    const price = (name: string) => types.find((type) => type.name === name)?.offerings[0]?.pricePerHour
    assert.deepEqual([price('standard.small'), price('standard.medium')], [9, 0.046_66])
  })
})
