import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { eventLoopTurns, VirtualClock } from '@tenon/runtime'
import { Counter, Gauge, Histogram, Summary } from 'prom-client'
import { KeptGauge, type KeptSource } from './gauges.ts'
import { MetricsRegistry, scrapeResponse } from './metrics-registry.ts'

function aRegistry() {
  const clock = new VirtualClock()
  const registry = new MetricsRegistry(clock, eventLoopTurns)
  const of = { help: 'Help', registers: [registry] }
  return { clock, registry, of, lines: async () => (await registry.metrics()).split('\n') }
}

describe('a scrape', () => {
  test('has every family with what it is and its series', async () => {
    const { registry, of } = aRegistry()
    new Counter({ ...of, name: 'a_total', labelNames: ['x'] }).inc({ x: '1' }, 2)
    new Gauge({ ...of, name: 'b', help: 'Two\nlines \\ here' }).set(Number.POSITIVE_INFINITY)
    new Histogram({ ...of, name: 'c', labelNames: ['x'], buckets: [0.5, 1] }).observe({ x: '1' }, 0.7)
    new Summary({ ...of, name: 'd', percentiles: [0.5] }).observe(3)
    assert.equal(
      await registry.metrics(),
      [
        '# HELP a_total Help',
        '# TYPE a_total counter',
        'a_total{x="1"} 2',
        '# HELP b Two\\nlines \\\\ here',
        '# TYPE b gauge',
        'b +Inf',
        '# HELP c Help',
        '# TYPE c histogram',
        'c_bucket{le="0.5",x="1"} 0',
        'c_bucket{le="1",x="1"} 1',
        'c_bucket{le="+Inf",x="1"} 1',
        'c_sum{x="1"} 0.7',
        'c_count{x="1"} 1',
        '# HELP d Help',
        '# TYPE d summary',
        'd{quantile="0.5"} 3',
        'd_sum 3',
        'd_count 1',
        '',
      ].join('\n'),
    )
  })

  test('OPS-101 no label value has a comma, whatever it was made of', async () => {
    const { of, lines, registry, clock } = aRegistry()
    const value = 'a,b "c" \\ \n d'
    new Counter({ ...of, name: 'a_total', labelNames: ['x'] }).inc({ x: value })
    new Histogram({ ...of, name: 'b', labelNames: ['x'], buckets: [1] }).observe({ x: value }, 2)
    const kept = new KeptGauge({ ...of, name: 'c', labelNames: ['x', 'y'] }, () => clock.now())
    kept.show('one', [{ labels: { x: value }, shared: { y: value }, value: 1 }])
    const shown = 'a;b \\"c\\" \\\\ \\n d'
    const series = (await lines()).filter((line) => !line.startsWith('#') && line !== '')
    assert.deepEqual(series, [
      `a_total{x="${shown}"} 1`,
      `b_bucket{le="1",x="${shown}"} 0`,
      `b_bucket{le="+Inf",x="${shown}"} 1`,
      `b_sum{x="${shown}"} 2`,
      `b_count{x="${shown}"} 1`,
      `c{x="${shown}",y="${shown}"} 1`,
    ])
    assert.equal(registry.contentType, 'text/plain; version=0.0.4; charset=utf-8')
  })
})

describe('the page of a scrape', () => {
  async function page(headers: Readonly<Record<string, string>>) {
    const { registry, of } = aRegistry()
    const gauge = new Gauge({ ...of, name: 'a', labelNames: ['x'] })
    for (let i = 0; i < 5000; i++) gauge.set({ x: `é-${i}` }, i)
    const answer = scrapeResponse(registry, { headers })
    const pieces: Buffer[] = []
    for await (const piece of answer.body) pieces.push(Buffer.from(piece))
    return { answer, bytes: Buffer.concat(pieces), text: await registry.metrics() }
  }

  test('is what the registry says, as it is or compressed, as the reader asks', async () => {
    for (const accepted of [undefined, '', 'identity', 'br, deflate', 'gzip;q=0', 'gzip; q=0.00']) {
      const { answer, bytes, text } = await page({
        ...(accepted !== undefined && { 'accept-encoding': accepted }),
      })
      assert.equal(bytes.toString(), text, accepted)
      assert.equal(answer.headers['content-encoding'], undefined, accepted)
      assert.equal(answer.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
    }
    for (const accepted of ['gzip', 'br, GZIP;q=0.3, *;q=0']) {
      const { answer, bytes, text } = await page({ 'accept-encoding': accepted })
      assert.equal(answer.headers['content-encoding'], 'gzip')
      assert.equal(gunzipSync(bytes).toString(), text)
    }
  })

  test('breaks off when a family cannot be told', async () => {
    for (const headers of [{}, { 'accept-encoding': 'gzip' }]) {
      const { registry, of } = aRegistry()
      registry.registerMetric(
        new Gauge({ ...of, registers: [], name: 'a', collect: () => Promise.reject(new Error('broken')) }),
      )
      const { body } = scrapeResponse(registry, { headers })
      const read = async () => {
        for await (const _ of body);
      }
      await assert.rejects(read, /broken/)
    }
  })
})

describe('a gauge that keeps the series of objects', () => {
  function aKept(source?: KeptSource) {
    const made = aRegistry()
    const gauge = new KeptGauge({ ...made.of, name: 'g', labelNames: ['x'] }, () => made.clock.now(), source)
    const shown = async () => (await made.lines()).filter((line) => line.startsWith('g'))
    return { ...made, gauge, shown }
  }

  test('shows of each object what it showed last, until it is gone', async () => {
    const { gauge, shown } = aKept()
    gauge.show('a', [
      { labels: { x: '1' }, value: 1 },
      { labels: { x: '2' }, value: 2 },
    ])
    gauge.show('b', [{ labels: { x: '3' }, value: 3 }])
    assert.deepEqual(await shown(), ['g{x="1"} 1', 'g{x="2"} 2', 'g{x="3"} 3'])
    gauge.show('a', [{ labels: { x: '2' }, value: 5 }])
    gauge.drop('b')
    assert.deepEqual(await shown(), ['g{x="2"} 5'])
    gauge.show('a', [])
    assert.deepEqual(await shown(), [])
    assert.deepEqual((await gauge.get()).values, [])
  })

  test('an age grows', async () => {
    const { gauge, shown, clock } = aKept()
    gauge.show('a', [{ labels: { x: '1' }, value: { sinceMs: clock.now() } }])
    assert.deepEqual(await shown(), ['g{x="1"} 0'])
    await clock.advance(1500)
    assert.deepEqual(await shown(), ['g{x="1"} 1.5'])
    gauge.reset()
    assert.deepEqual(await shown(), [])
  })

  test('is brought up to date before anybody looks', async () => {
    let looks = 0
    const { gauge, shown } = aKept({
      *bringUpToDate(kept) {
        kept.show('a', [{ labels: { x: '1' }, value: ++looks }])
        yield undefined
        kept.show('b', [{ labels: { x: '2' }, value: looks }])
      },
    })
    assert.deepEqual(await shown(), ['g{x="1"} 1', 'g{x="2"} 1'])
    const { values } = await gauge.get()
    assert.deepEqual(
      values.map(({ value }) => value),
      [2, 2],
    )
  })
})
