const fs = require('fs');
const path = require('path');

// A path is no name of a program.
const isProgram = (name) =>
  !name.includes('/') &&
  (process.env.PATH || '').split(':').some((directory) => {
    try {
      const file = path.join(directory, name);
      fs.accessSync(file, fs.constants.X_OK);
      return fs.statSync(file).isFile();
    } catch {
      return false;
    }
  });

const inNode = (name, version) => {
  try {
    const found = require(name + '/package.json').version;
    return !version || version === found;
  } catch {
    return false;
  }
};

exports.handler = (packages) =>
  packages.filter((pack) => {
    const [name, version] = pack.split('==');
    return !((!version && isProgram(name)) || inNode(name, version));
  });
