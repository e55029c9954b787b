import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Look, Settling, type Verdict } from './settling.ts'

const minute = 60_000

/** The verdict of each minute from the begin of the calm until one is no `waiting`. */
function follow(lookAt: (minutes: number) => Partial<Look>): {
  readonly verdict: Verdict
  readonly at: number
} {
  const settling = new Settling(0)
  for (let at = 0; at < 200; at++) {
    const usual = {
      nowMs: at * minute,
      fleet: 'a b',
      wrong: [],
      launches: 0,
      launchesOfAge: 0,
      repeats: false,
    }
    const verdict = settling.look({ ...usual, ...lookAt(at) })
    if (verdict.kind !== 'waiting') return { verdict, at }
  }
  throw new Error('no verdict within 200 minutes')
}

describe('a world that has become calm', () => {
  test('is well when nothing was wrong and no instance came or went for twelve minutes', () => {
    const found = follow((at) => ({
      wrong: at < 5 ? ['2 pod(s) do not run'] : [],
      fleet: at < 9 ? 'a' : 'b',
    }))
    assert.deepEqual(found, { verdict: { kind: 'well' }, at: 21 })
  })

  test('is broken when something stays wrong until the bound', () => {
    const { verdict, at } = follow(() => ({ wrong: ['1 bootstrap token(s) left'] }))
    const text = '1 bootstrap token(s) left'
    assert.deepEqual(verdict, { kind: 'broken', invariant: 'everythingIsWellInTheEnd', text })
    assert.equal(at, 101)
  })

  test('is well when only an instance that comes for an old one is on its way at the bound', () => {
    const { verdict, at } = follow((minutes) => ({
      fleet: String(Math.floor(minutes / 10)),
      wrong: minutes % 10 < 2 ? ['1 bootstrap token(s) left'] : [],
      launches: Math.floor(minutes / 10),
      launchesOfAge: 12,
    }))
    assert.deepEqual(verdict, { kind: 'well' })
    assert.equal(at, 102)
  })

  test('is broken when what is wrong at the bound stays so', () => {
    const { verdict, at } = follow((minutes) => ({
      fleet: String(Math.floor(minutes / 10)),
      wrong: minutes >= 99 ? ['1 instance(s) without a NodeClaim'] : [],
    }))
    assert.equal(verdict.kind, 'broken')
    assert.equal(at, 111)
  })

  test('is broken when more instances come and go than age explains', () => {
    const { verdict } = follow((minutes) => ({
      fleet: String(minutes),
      launches: minutes,
      launchesOfAge: 12,
    }))
    assert.deepEqual(verdict, {
      kind: 'broken',
      invariant: 'costSettles',
      text: 'instances still come and go',
    })
  })

  test('is well when the age of a fleet that was larger before explains them', () => {
    const { verdict } = follow((minutes) => ({
      fleet: String(minutes),
      launches: Math.min(minutes / 5, 18),
      launchesOfAge: minutes < 95 ? 40 : 10,
    }))
    assert.deepEqual(verdict, { kind: 'well' })
  })

  test('is well when they come and go as with a controller that repeats what was in vain', () => {
    const { verdict } = follow((minutes) => ({ fleet: String(minutes), launches: minutes, repeats: true }))
    assert.deepEqual(verdict, { kind: 'well' })
  })
})
