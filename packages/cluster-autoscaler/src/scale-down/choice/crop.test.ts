import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assert as check, nat, property } from 'fast-check'
import { crop } from './choose.ts'

test('as many go as when they are taken one by one, empty ones first, as long as a limit allows', () => {
  check(
    property(nat(12), nat(12), nat(12), nat(6), nat(10), (empty, drain, inProgress, draining, limit) => {
      const maxDrainParallelism = 3
      let [busy, busyDraining, goEmpty, goDrain] = [inProgress, draining, 0, 0]
      for (let index = 0; index < empty && busy < limit; index++, busy++) goEmpty++
      for (let index = 0; index < drain && busy < limit && busyDraining < maxDrainParallelism; index++) {
        busy++
        busyDraining++
        goDrain++
      }
      const cropped = crop({
        empty: Array.from({ length: empty }, (_, index) => index),
        drain: Array.from({ length: drain }, (_, index) => index),
        inProgress,
        draining,
        maxParallelism: limit,
        maxDrainParallelism,
      })
      assert.deepEqual([cropped.empty.length, cropped.drain.length], [goEmpty, goDrain])
    }),
  )
})
