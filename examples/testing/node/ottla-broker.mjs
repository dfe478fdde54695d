// Runs `ottla broker` for a test. Copy this file beside your tests; `ottla` is on the PATH, or OTTLA names the program.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** A broker on a free port, until `stop()`. */
export class OttlaBroker {
  #process;
  #exited;
  #properties = new Map();
  #waiting = new Map();
  #errors = '';
  #ended = false;
  #timeout;

  /** Starts a broker with options of `ottla broker`, and waits until it answers. */
  static async start(options = [], { timeout = 30_000 } = {}) {
    const broker = new OttlaBroker(options, timeout);
    try {
      broker.bootstrapServers = await broker.property('bootstrap.servers');
      return broker;
    } catch (error) {
      await broker.stop();
      throw error;
    }
  }

  constructor(options, timeout) {
    this.#timeout = timeout;
    const command = process.env.OTTLA ?? 'ottla';
    this.#process = spawn(command, ['broker', '--port', '0', ...options], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#process.stderr.setEncoding('utf8').on('data', (text) => (this.#errors += text));
    createInterface({ input: this.#process.stdout }).on('line', (line) => this.#read(line));
    this.#exited = new Promise((resolve) => {
      const end = (error) => {
        if (error instanceof Error) this.#errors += error.message;
        this.#ended = true;
        for (const [name, { reject }] of this.#waiting) reject(this.#missing(name));
        resolve();
      };
      this.#process.on('error', end).on('close', end);
    });
  }

  /** Returns a property that the broker prints, such as `control` or `sasl.password`; waits until it is there. */
  property(name) {
    if (this.#properties.has(name)) return Promise.resolve(this.#properties.get(name));
    if (this.#ended) return Promise.reject(this.#missing(name));
    if (!this.#waiting.has(name)) {
      const waiter = {};
      waiter.promise = new Promise((resolve, reject) => Object.assign(waiter, { resolve, reject }));
      waiter.timer = setTimeout(() => waiter.reject(this.#missing(name)), this.#timeout);
      const done = () => {
        clearTimeout(waiter.timer);
        this.#waiting.delete(name);
      };
      waiter.promise.then(done, done);
      this.#waiting.set(name, waiter);
    }
    return this.#waiting.get(name).promise;
  }

  /** Ends the broker, and waits for its end. */
  async stop() {
    this.#process.kill();
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), this.#timeout);
    await this.#exited;
    clearTimeout(timer);
  }

  #read(line) {
    const at = line.indexOf('=');
    if (at < 0) return;
    const name = line.slice(0, at);
    if (!this.#properties.has(name)) this.#properties.set(name, line.slice(at + 1));
    this.#waiting.get(name)?.resolve(this.#properties.get(name));
  }

  #missing(name) {
    return new Error(`ottla broker does not print ${name}: ${this.#errors.trim() || 'no error'}`);
  }
}
