import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { silentLogger, VirtualClock } from '@tenon/runtime'
import type { StoredObject } from '../contract.ts'
import { keyOf } from './collection.ts'
import { type DataFiles, DirectoryFiles } from './data-files.ts'
import { loadState, Persistence } from './persistence.ts'
import { Store } from './store.ts'

const parts = { clock: new VirtualClock(), logger: silentLogger }

class MemoryFiles implements DataFiles {
  readonly texts = new Map<string, string>()

  list(): Promise<string[]> {
    return Promise.resolve([...this.texts.keys()])
  }

  async *lines(name: string): AsyncGenerator<string> {
    yield* (this.texts.get(name) ?? '').split('\n')
  }

  append(name: string, text: string): Promise<void> {
    this.texts.set(name, (this.texts.get(name) ?? '') + text)
    return Promise.resolve()
  }

  replace(name: string, chunks: Iterable<string>): Promise<void> {
    this.texts.set(name, [...chunks].join(''))
    return Promise.resolve()
  }

  remove(name: string): Promise<void> {
    this.texts.delete(name)
    return Promise.resolve()
  }
}

function anObject(name: string, value: number): StoredObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'a' }, value }
}

function put(store: Store, name: string, value: number): void {
  store.put(store.collection('configmaps'), keyOf('a', name), anObject(name, value))
}

async function reloaded(files: DataFiles): Promise<Store> {
  return new Store({ clock: new VirtualClock(), initial: await loadState(files) })
}

function valuesOf(store: Store): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  store.collection('configmaps').scan({}, (object) => {
    values[object.metadata.name] = object['value']
    return true
  })
  return values
}

test('a restarted store has the objects and the revision of the one before', async () => {
  const files = new MemoryFiles()
  const store = new Store({ clock: new VirtualClock() })
  const persistence = new Persistence(store, { ...parts, files })
  put(store, 'one', 1)
  put(store, 'two', 2)
  put(store, 'one', 3)
  store.remove(store.collection('configmaps'), keyOf('a', 'two'))
  await persistence.close()
  const next = await reloaded(files)
  assert.deepEqual(valuesOf(next), { one: 3 })
  assert.equal(next.revision, 4)
  assert.equal(next.collection('configmaps').compactedRevision, 4)
})

test('a torn last line is dropped and the lines before it are kept', async () => {
  const files = new MemoryFiles()
  const store = new Store({ clock: new VirtualClock() })
  const persistence = new Persistence(store, { ...parts, files })
  put(store, 'one', 1)
  put(store, 'two', 2)
  await persistence.close()
  const [name, text] = [...files.texts][0] as [string, string]
  files.texts.set(name, text.slice(0, -10))
  assert.deepEqual(valuesOf(await reloaded(files)), { one: 1 })
})

test('a crash between snapshot and removal of old logs loses and repeats nothing', async () => {
  const files = new MemoryFiles()
  const store = new Store({ clock: new VirtualClock() })
  const persistence = new Persistence(store, { ...parts, files })
  put(store, 'one', 1)
  put(store, 'two', 2)
  await persistence.flush()
  const oldLogs = new Map(files.texts)
  store.remove(store.collection('configmaps'), keyOf('a', 'two'))
  await persistence.compact()
  put(store, 'three', 3)
  await persistence.close()
  for (const [name, text] of oldLogs) files.texts.set(name, text)
  const next = await reloaded(files)
  assert.deepEqual(valuesOf(next), { one: 1, three: 3 })
  assert.equal(next.revision, 4)
})

test('logs that grow beyond their limit are replaced by a snapshot', async () => {
  const files = new MemoryFiles()
  const store = new Store({ clock: new VirtualClock() })
  const persistence = new Persistence(store, { ...parts, files, compactAfterBytes: 500 })
  for (let value = 0; value < 50; value++) {
    put(store, 'one', value)
    await persistence.flush()
  }
  await persistence.close()
  const size = [...files.texts.values()].join('').length
  assert.ok(size < 2000, `${size} characters are kept`)
  assert.deepEqual(valuesOf(await reloaded(files)), { one: 49 })
})

test('a directory on disk keeps the state', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'tenon-state-'))
  try {
    const store = new Store({ clock: new VirtualClock() })
    const files = new DirectoryFiles(directory)
    await loadState(files)
    const persistence = new Persistence(store, { ...parts, files })
    put(store, 'one', 1)
    await persistence.compact()
    put(store, 'two', 2)
    await persistence.close()
    assert.deepEqual(valuesOf(await reloaded(new DirectoryFiles(directory))), { one: 1, two: 2 })
  } finally {
    await rm(directory, { recursive: true })
  }
})

/** A disk that is full for a while: part of a text may get onto it. */
class FullFiles extends MemoryFiles {
  isFull = false

  override async append(name: string, text: string): Promise<void> {
    await super.append(name, this.isFull ? text.slice(0, 10) : text)
    this.#check()
  }

  override async replace(name: string, chunks: Iterable<string>): Promise<void> {
    this.#check()
    await super.replace(name, chunks)
  }

  #check(): void {
    if (this.isFull) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
  }
}

test('a full disk is told until there is room, and then everything is saved', async () => {
  const clock = new VirtualClock()
  const told: string[] = []
  const logger = {
    ...silentLogger,
    error: (message: string) => told.push(message),
    info: (message: string) => told.push(message),
  }
  const files = new FullFiles()
  const store = new Store({ clock })
  const persistence = new Persistence(store, { files, clock, logger })
  put(store, 'one', 1)
  await persistence.flush()
  files.isFull = true
  put(store, 'two', 2)
  await persistence.flush()
  put(store, 'three', 3)
  await clock.advance(10_000)
  assert.ok(told.length >= 3 && told.every((message) => message.startsWith('the state cannot be saved')))
  assert.deepEqual(valuesOf(await reloaded(files)), { one: 1 })
  files.isFull = false
  await clock.advance(30_000)
  assert.equal(told.at(-1), 'the state is saved again')
  assert.deepEqual(valuesOf(await reloaded(files)), { one: 1, two: 2, three: 3 })
  put(store, 'four', 4)
  await persistence.close()
  assert.deepEqual(valuesOf(await reloaded(files)), { one: 1, two: 2, three: 3, four: 4 })
})

/** A disk that answers when it is told to. */
class SlowFiles extends MemoryFiles {
  readonly #answers: (() => void)[] = []

  override async append(name: string, text: string): Promise<void> {
    await new Promise<void>((resolve) => this.#answers.push(resolve))
    await super.append(name, text)
  }

  /** Lets one write get onto the disk. */
  async finishOne(): Promise<void> {
    this.#answers.shift()?.()
    await setImmediate()
  }
}

test('what was committed is awaited until it is on disk, and nothing that was committed later', async () => {
  const files = new SlowFiles()
  const store = new Store({ clock: new VirtualClock() })
  const persistence = new Persistence(store, { ...parts, files })
  const saved: string[] = []
  const write = (name: string) => {
    put(store, name, 1)
    void persistence.saved().then(() => saved.push(name))
  }
  write('one')
  write('two')
  await setImmediate()
  assert.deepEqual(saved, [])
  await files.finishOne()
  assert.deepEqual(saved, ['one'])
  write('three')
  await files.finishOne()
  assert.deepEqual(saved, ['one', 'two'])
  assert.deepEqual(valuesOf(await reloaded(files)), { one: 1, two: 1 })
  await files.finishOne()
  assert.deepEqual(saved, ['one', 'two', 'three'])
  await persistence.saved()
})

test('nobody waits for a disk that is full', async () => {
  const clock = new VirtualClock()
  const files = new FullFiles()
  const store = new Store({ clock })
  const persistence = new Persistence(store, { files, clock, logger: silentLogger })
  files.isFull = true
  put(store, 'one', 1)
  await persistence.saved()
  put(store, 'two', 2)
  await persistence.saved()
  files.isFull = false
  await clock.advance(30_000)
  put(store, 'three', 3)
  await persistence.saved()
  assert.deepEqual(valuesOf(await reloaded(files)), { one: 1, two: 2, three: 3 })
})

/** A store with one object that a full disk has not taken; there is room again. */
async function afterFullDisk(files: FullFiles) {
  const clock = new VirtualClock()
  const store = new Store({ clock })
  const persistence = new Persistence(store, { files, clock, logger: silentLogger })
  files.isFull = true
  put(store, 'one', 1)
  await persistence.flush()
  files.isFull = false
  return { clock, store, persistence }
}

/** While it writes a file, something else happens. */
class BusyFiles extends FullFiles {
  meanwhile: () => void = () => undefined

  override async replace(name: string, chunks: Iterable<string>): Promise<void> {
    const texts = [...chunks]
    await setImmediate()
    this.meanwhile()
    await super.replace(name, texts)
  }
}

test('what is committed while the snapshot after a full disk is written is saved as well', async () => {
  const files = new BusyFiles()
  const { clock, store, persistence } = await afterFullDisk(files)
  files.meanwhile = () => {
    put(store, 'meanwhile', 2)
  }
  await clock.advance(30_000)
  await persistence.flush()
  assert.deepEqual(valuesOf(await reloaded(files)), { one: 1, meanwhile: 2 })
})

test('the end of the process is a last try to save what a full disk did not take', async () => {
  const files = new FullFiles()
  const { persistence } = await afterFullDisk(files)
  await persistence.close()
  assert.deepEqual(valuesOf(await reloaded(files)), { one: 1 })
})
