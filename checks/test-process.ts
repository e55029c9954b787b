/**
 * Runs the test files that are its arguments, in this process. Node's runner would follow every promise and timer, to
 * know which test an uncaught error belongs to, and that takes a third of the time of a simulated cluster. Without, such
 * an error fails the process instead of one test. Hooks at the top of a file come too late for its suites.
 */
import asyncHooks from 'node:async_hooks'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const { createHook } = asyncHooks
const noHook = { enable: () => noHook, disable: () => noHook }
Object.assign(asyncHooks, { createHook: () => noHook })
const { before, test } = await import('node:test')
Object.assign(asyncHooks, { createHook })

// The runner tells its message alone.
for (const event of ['uncaughtException', 'unhandledRejection'])
  process.on(event, (error: unknown) => {
    console.error(error)
  })

const loaded = Promise.withResolvers<void>()
// Loading would take time from tests that measure it.
before(() => loaded.promise)
for (const file of process.argv.slice(2)) {
  try {
    await import(pathToFileURL(resolve(file)).href)
  } catch (error) {
    test(`${file} can be loaded`, () => {
      throw error
    })
  }
}
loaded.resolve()
